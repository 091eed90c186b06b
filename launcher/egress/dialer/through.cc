#include "launcher/egress/dialer/through.h"

#include <array>
#include <cerrno>

#include "launcher/egress/parse/base64.h"
#include "launcher/egress/parse/http_answer.h"
#include "launcher/egress/parse/socks5.h"
#include "launcher/egress/parse/socks5_server.h"

namespace caisson::egress {
namespace {

constexpr int kMostInterim = 8;  // a proxy that sends them without end would keep the loop
constexpr int kProxyAuthenticationRequired = 407, kForbidden = 403, kBadGateway = 502, kGatewayTimeout = 504;

Through failed(int error) {
  Through out;
  out.error = error;
  return out;
}

Through refused(int status) {
  Through out;
  out.status = status;
  return out;
}

std::string connect_text(const Upstream& upstream, const std::string& host, std::uint16_t port) {
  const std::string place = (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port);
  std::string out = "CONNECT " + place + " HTTP/1.1\r\nHost: " + place + "\r\n";
  if (!upstream.user.empty()) out += "Proxy-Authorization: Basic " + base64(upstream.user + ":" + upstream.password) + "\r\n";
  return out + "\r\n";
}

// An errno; 0: all of it.
Task<int> send(Stream& stream, std::string text, std::int64_t deadline_us) {
  while (!text.empty()) {
    const ssize_t sent = stream.write(text);
    if (sent > 0) {
      text.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      const bool stirred = co_await Stirred(deadline_us, stream);
      if (!stirred) co_return ETIMEDOUT;
    } else if (errno != EINTR) {
      co_return ECONNRESET;
    }
  }
  co_return 0;
}

// An errno; 0: `read` has what it wanted. What is behind it stays in the socket.
template <class Reader>
Task<int> take(Stream& stream, std::int64_t deadline_us, Reader read) {
  std::string seen;
  for (;;) {
    static std::array<char, 4096> buffer;  // not in the frame: nothing of it is used after a wait
    const ssize_t got = stream.peek(buffer);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) co_return ECONNRESET;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const bool stirred = co_await Stirred(deadline_us, stream);
      if (!stirred) co_return ETIMEDOUT;
      continue;
    }
    const std::size_t before = seen.size();
    seen.append(buffer.data(), static_cast<std::size_t>(got));
    const Outcome outcome = read(std::string_view(seen));
    if (outcome.refused()) co_return EPROTO;
    const std::size_t ours = outcome.done() ? outcome.size - before : static_cast<std::size_t>(got);
    if (stream.read(std::span(buffer).first(ours)) != static_cast<ssize_t>(ours)) co_return ECONNRESET;
    if (outcome.done()) co_return 0;
  }
}

Task<Through> by_connect(Stream& stream, Upstream upstream, std::string host, std::uint16_t port, std::int64_t deadline_us) {
  const int sent = co_await send(stream, connect_text(upstream, host, port), deadline_us);
  if (sent != 0) co_return failed(sent);
  for (int answers = 0; answers <= kMostInterim; ++answers) {
    int status = 0;
    bool interim = false;
    // What CONNECT succeeds with has no body, whatever its fields say (RFC 9110 9.3.6), as an answer to HEAD.
    const auto read = [&status, &interim, scan = HeadScan()](std::string_view bytes) mutable {
      AnswerHead head;
      const Outcome outcome = read_answer_head(bytes, true, scan, head);
      status = head.status, interim = head.interim;
      return outcome;
    };
    const int error = co_await take(stream, deadline_us, read);
    if (error != 0) co_return failed(error);
    if (interim) continue;
    co_return refused(status);
  }
  co_return failed(EPROTO);
}

// What it would be in HTTP.
int status_of(std::uint8_t reply) {
  if (reply == static_cast<std::uint8_t>(SocksReply::succeeded)) return 200;
  if (reply == static_cast<std::uint8_t>(SocksReply::not_allowed)) return kForbidden;
  return reply == static_cast<std::uint8_t>(SocksReply::expired) ? kGatewayTimeout : kBadGateway;
}

std::string sized(std::string_view text) { return static_cast<char>(text.size()) + std::string(text); }

// A credential is offered beside none, as clients do: a proxy that wants none does not learn it.
std::string greeting(const Upstream& upstream) {
  return upstream.user.empty() ? std::string("\x05\x01\x00", 3) : std::string("\x05\x02\x00\x02", 4);
}

// Names go as names, unless they were resolved here.
std::string socks_request(const std::string& host, std::uint16_t port) {
  constexpr char kIpv4 = 1, kName = 3, kIpv6 = 4;
  std::string out("\x05\x01\x00", 3);
  const auto read = read_host(host);
  if (const auto* address = read ? std::get_if<Address>(&*read) : nullptr) {
    out += address->v6 ? kIpv6 : kIpv4;
    out.append(reinterpret_cast<const char*>(address->bytes.data()), address->v6 ? 16 : 4);
  } else {
    out += kName;
    out += sized(host);
  }
  out += static_cast<char>(port >> 8);
  out += static_cast<char>(port & 0xff);
  return out;
}

Task<Through> by_socks(Stream& stream, Upstream upstream, std::string host, std::uint16_t port, std::int64_t deadline_us) {
  int error = co_await send(stream, greeting(upstream), deadline_us);
  SocksMethod method = SocksMethod::refused;
  const auto read_method = [&method](std::string_view bytes) { return read_socks_method(bytes, method); };
  if (error == 0) error = co_await take(stream, deadline_us, read_method);
  if (error != 0) co_return failed(error);
  if (method == SocksMethod::refused || (method == SocksMethod::password && upstream.user.empty()))
    co_return refused(kProxyAuthenticationRequired);
  if (method == SocksMethod::password) {
    bool taken = false;
    const auto read_login = [&taken](std::string_view bytes) { return read_socks_login(bytes, taken); };
    error = co_await send(stream, "\x01" + sized(upstream.user) + sized(upstream.password), deadline_us);
    if (error == 0) error = co_await take(stream, deadline_us, read_login);
    if (error != 0) co_return failed(error);
    if (!taken) co_return refused(kProxyAuthenticationRequired);
  }
  std::uint8_t reply = 0;
  const auto read_reply = [&reply](std::string_view bytes) { return read_socks_reply(bytes, reply); };
  error = co_await send(stream, socks_request(host, port), deadline_us);
  if (error == 0) error = co_await take(stream, deadline_us, read_reply);
  if (error != 0) co_return failed(error);
  co_return refused(status_of(reply));
}

}  // namespace

Task<Through> go_through(Poll& poll, Fd proxy, Upstream upstream, std::string host, std::uint16_t port,
                         std::int64_t deadline_us) {
  Stream stream(poll, std::move(proxy));
  Through out;
  if (upstream.kind == Upstream::Kind::socks5)
    out = co_await by_socks(stream, std::move(upstream), std::move(host), port, deadline_us);
  else out = co_await by_connect(stream, std::move(upstream), std::move(host), port, deadline_us);
  if (out.error == 0 && out.status >= 200 && out.status < 300) out.fd = stream.take(), out.status = 0;
  co_return out;
}

}  // namespace caisson::egress
