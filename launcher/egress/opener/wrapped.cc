#include "launcher/egress/opener/wrapped.h"

#include <openssl/x509_vfy.h>

#include <array>
#include <cerrno>
#include <utility>

#include "launcher/common/base/word.h"
#include "launcher/common/telling/json_text.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kPart = 16 * 1024, kATurn = 256 * 1024;
constexpr int kMostTurns = 64;

std::string_view name_of(Refusal refusal) { return word(words(refusal), static_cast<std::size_t>(refusal)); }

}  // namespace

Wrapped::Wrapped(Poll& poll, LauncherLine& launcher, const Trust& trust, To to, Fd proxy, Fd plain, Share share,
                 std::function<void(Wrapped&)> over)
    : poll_(poll),
      launcher_(launcher),
      trust_(trust),
      to_(std::move(to)),
      share_(std::move(share)),
      proxy_(poll, std::move(proxy)),
      plain_(poll, std::move(plain)),
      when_over_(std::move(over)),
      over_(poll, [this] { std::exchange(when_over_, {})(*this); }) {}

Task<bool> Wrapped::talk() {
  const bool met = co_await meet();
  Next next = met ? Next::again : Next::over;
  for (int turns = 0; next != Next::over; next = turn()) {
    if (next == Next::wait) {
      const std::int64_t idle_us = up_over_ || down_over_ ? kHalfUs : kIdleUs;
      const bool stirred = co_await Stirred(poll_.now_us() + idle_us, plain_, &proxy_);
      if (!stirred) break;
    } else if (++turns >= kMostTurns || moved_ >= kATurn) {
      // Two fast ends would keep the loop from all others.
      turns = 0, moved_ = 0;
      Told pause(poll_, poll_.now_us());
      co_await pause;
    }
  }
  if (tls_ && !up_over_) tls_->close();
  over_.set(poll_.now_us());  // there its frame is not in use any more
  co_return met;
}

Task<bool> Wrapped::meet() {
  tls_ = trust_.connect(proxy_, to_.host);
  if (!tls_) co_return false;
  const bool verified = co_await tls_->handshake(poll_.now_us() + kHandshakeUs);
  const long why = SSL_get_verify_result(tls_->ssl());
  if (!verified && why != X509_V_OK) tell(name_of(Refusal::certificate), X509_verify_cert_error_string(why));
  else if (!verified) tell(name_of(Refusal::not_tls), "the upstream proxy does not speak TLS");
  co_return verified;
}

Wrapped::Next Wrapped::turn() {
  const Next up = move_up();
  if (up == Next::over) return up;
  const Next down = move_down();
  if (down == Next::over || (up_over_ && down_over_ && up_.empty() && down_.empty())) return Next::over;
  return up == Next::again || down == Next::again ? Next::again : Next::wait;
}

Wrapped::Next Wrapped::move_up() {
  static std::array<char, kPart> buffer;  // nothing of it is used after a wait
  if (up_.empty() && !up_over_) {
    const ssize_t got = plain_.read(buffer);
    if (got == 0) up_over_ = true, tls_->close();
    else if (got < 0 && errno != EAGAIN && errno != EINTR) return Next::over;
    else if (got > 0) up_.assign(buffer.data(), static_cast<std::size_t>(got));
  }
  if (up_.empty()) return tls_->flush() || errno == EAGAIN ? Next::wait : Next::over;
  const ssize_t sent = tls_->write(up_);
  if (sent < 0) return errno == EAGAIN ? Next::wait : Next::over;
  up_.erase(0, static_cast<std::size_t>(sent));
  moved_ += static_cast<std::size_t>(sent);
  return Next::again;
}

Wrapped::Next Wrapped::move_down() {
  static std::array<char, kPart> buffer;
  if (down_.empty() && !down_over_) {
    const ssize_t got = tls_->read(buffer);
    if (got == 0) down_over_ = true, plain_.end_of_writing();
    else if (got < 0 && errno != EAGAIN) return Next::over;
    else if (got > 0) down_.assign(buffer.data(), static_cast<std::size_t>(got));
  }
  if (down_.empty()) return Next::wait;
  const ssize_t sent = plain_.write(down_);
  if (sent < 0) return errno == EAGAIN || errno == EINTR ? Next::wait : Next::over;
  down_.erase(0, static_cast<std::size_t>(sent));
  moved_ += static_cast<std::size_t>(sent);
  return Next::again;
}

void Wrapped::tell(std::string_view refusal, std::string_view detail) {
  JsonText told;
  told.string("domain", to_.domain).string("event", "refusal").string("via", "upstream").string("host", to_.host);
  told.number("port", to_.port).string("refusal", refusal).string("detail", detail);
  (void)launcher_.tell(Said::record, to_.workspace, told.text());
}

}  // namespace caisson::egress
