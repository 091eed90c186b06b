#include "agent/http/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <cstdlib>

namespace caisson::http {
namespace {

using TlsClock = std::chrono::steady_clock;

// OpenSSL allocates what a ClientHello claims to need, up to 128 KiB, before it has come. Real ones have 2 KiB.
constexpr unsigned kMostHello = 16 * 1024;
constexpr std::size_t kMostHandshake = 64 * 1024;
constexpr std::size_t kMostAtOnce = 4 * TlsWire::kRecord;  // then others have their turn

constexpr unsigned char kHandshake = 22, kClientHello = 1;

boost::system::error_code system_error(int number) { return {number, boost::system::system_category()}; }

TlsWire& wire_of(BIO* bio) { return *static_cast<TlsWire*>(BIO_get_data(bio)); }

// Whether the call is to be repeated when the socket is ready.
bool is_to_wait(BIO* bio, int how) {
  if (errno != EAGAIN && errno != EINTR) {
    wire_of(bio).failure = system_error(errno);
    return false;
  }
  BIO_set_flags(bio, how | BIO_FLAGS_SHOULD_RETRY);
  return true;
}

int receive(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  TlsWire& wire = wire_of(bio);
  const ssize_t n = ::recv(wire.socket.native_handle(), into, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (n < 0) (void)is_to_wait(bio, BIO_FLAGS_READ);
  if (n <= 0) return static_cast<int>(n);
  if (wire.acceptable({into, static_cast<std::size_t>(n)})) return static_cast<int>(n);
  wire.failure = system_error(EPROTO);
  return -1;
}

int send_out(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n =
      ::send(wire_of(bio).socket.native_handle(), from, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0) (void)is_to_wait(bio, BIO_FLAGS_WRITE);
  return static_cast<int>(n);
}

long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "caisson socket");
    if (made == nullptr || BIO_meth_set_read(made, receive) != 1 || BIO_meth_set_write(made, send_out) != 1 ||
        BIO_meth_set_ctrl(made, control) != 1)
      std::abort();
    return made;
  }();
  return method;
}

}  // namespace

TlsWire::TlsWire(tcp::socket socket_, const TlsContext& context)
    : socket(std::move(socket_)), ssl_(SSL_new(context.get())), timer_(socket.get_executor()) {
  BIO* const bio = BIO_new(socket_method());
  if (!ssl_ || bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_accept_state(ssl_.get());
}

bool TlsWire::acceptable(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size() && received_ + i < 9; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const std::size_t at = received_ + i;
    plain = at == 0 && byte >= 'A' && byte <= 'Z';
    if (at == 0 && byte != kHandshake) return false;
    if (at == 5 && byte != kClientHello) return false;
    if ((at == 6 && byte != 0) || (at == 7 && byte >= (kMostHello >> 8))) return false;
  }
  received_ += bytes.size();
  return established || received_ <= kMostHandshake;
}

// An error of the protocol leaves no details: whatever it is, the connection cannot be used any more.
TlsStep TlsWire::step(int result, std::size_t done) {
  if (done > 0) return {.bytes = done};
  const int error = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  switch (error) {
    case SSL_ERROR_NONE:
      return {};
    case SSL_ERROR_WANT_READ:
      return {.need = TlsStep::Need::input};
    case SSL_ERROR_WANT_WRITE:
      return {.need = TlsStep::Need::output};
    case SSL_ERROR_ZERO_RETURN:
      return {.error = asio::error::eof};
    default:
      return {.error = failure ? failure : system_error(EPROTO)};
  }
}

TlsStep TlsWire::accept() {
  if (!socket.is_open()) return {.error = asio::error::operation_aborted};
  ERR_clear_error();
  const int result = SSL_accept(ssl_.get());
  established = result == 1;
  return step(result, 0);
}

TlsStep TlsWire::read(asio::mutable_buffer into) {
  if (!socket.is_open()) return {.error = asio::error::operation_aborted};
  std::size_t done = 0;
  int result = 1;
  ERR_clear_error();
  while (result == 1 && into.size() > 0 && done < kMostAtOnce) {
    std::size_t size = 0;
    result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &size);
    done += size;
    into += size;
  }
  return step(result, done);
}

TlsStep TlsWire::write(asio::const_buffer from) {
  if (!socket.is_open()) return {.error = asio::error::operation_aborted};
  std::size_t done = 0;
  int result = 1;
  ERR_clear_error();
  while (result == 1 && from.size() > 0 && done < kMostAtOnce) {
    std::size_t size = 0;
    result = SSL_write_ex(ssl_.get(), from.data(), std::min(from.size(), kRecord), &size);
    done += size;
    from += size;
  }
  return step(result, done);
}

void TlsWire::finish() {
  if (!established || !socket.is_open()) return;
  ERR_clear_error();
  (void)SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

// One timer waits for the earliest of the deadlines so far, and for the rest when it is there: setting one costs nothing else.
void TlsWire::expires_after(TlsClock::duration time) {
  deadline_ = time == TlsClock::duration::max() ? TlsClock::time_point::max() : TlsClock::now() + time;
  if (deadline_ != TlsClock::time_point::max() && (!watched_ || deadline_ < *watched_)) watch();
}

void TlsWire::watch() {
  watched_ = deadline_;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const std::shared_ptr<TlsWire> self = weak.lock();
    if (!self || error) return;
    self->watched_.reset();
    boost::system::error_code ignored;
    if (TlsClock::now() >= self->deadline_) self->socket.close(ignored);
    else if (self->deadline_ != TlsClock::time_point::max()) self->watch();
  });
}

task<void> TlsStream::handshake() const {
  auto [error, size] = co_await start(TlsAccept(), as_values);
  if (error) co_return asio_error("TLS handshake", error);
  co_return Status{};
}

}  // namespace caisson::http
