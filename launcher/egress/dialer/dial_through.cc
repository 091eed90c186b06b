#include <sys/socket.h>

#include <cerrno>

#include "launcher/egress/dialer/dialer.h"
#include "launcher/egress/dialer/sockets.h"
#include "launcher/egress/dialer/through.h"

namespace caisson::egress {
namespace {

constexpr int kProxyAuthenticationRequired = 407;

}  // namespace

// A credential that the proxy does not take is renewed once. Never without the proxy: who set it may want all to be seen there.
Task<DialAnswer> Dialer::dial_through(Dial& dial, Way upstream, std::string host, std::int64_t deadline_us, DialAnswer answer,
                                      Fd& connection) {
  answer.upstream = 1;
  for (bool renewed = false;;) {
    Fd proxy;
    answer = co_await dial_proxy(dial, upstream, deadline_us, answer, proxy);
    if (!proxy) co_return answer;
    if (upstream->kind == Upstream::Kind::https) proxy = wrapped(dial, *upstream, std::move(proxy));
    if (!proxy) co_return refused(answer, Refusal::opener);
    Through made = co_await go_through(poll_, std::move(proxy), *upstream, host, dial.port, deadline_us);
    answer.error = made.error;
    connection = std::move(made.fd);
    if (connection || made.error != 0) co_return answer;
    if (made.status == kProxyAuthenticationRequired && !std::exchange(renewed, true)) {
      Way other = co_await upstreams_.renewed(dial.workspace, dial.domain, upstream, deadline_us);
      if (other) {
        upstream = std::move(other);
        continue;
      }
    }
    answer.status = static_cast<std::uint16_t>(made.status);
    co_return refused(answer, Refusal::upstream);
  }
}

Fd Dialer::wrapped(const Dial& dial, const Upstream& upstream, Fd connection) {
  const std::string host = host_text(upstream.host);
  const WrapRequest request{.workspace = dial.workspace,
                            .port = upstream.port,
                            .host_bytes = static_cast<std::uint16_t>(host.size()),
                            .domain_bytes = static_cast<std::uint16_t>(dial.domain.size()),
                            .reserved = 0};
  int ends[2];
  if (!opener_ || !opener_->open() || !opener_->room()) return {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return {};
  Fd ours(ends[0]), theirs(ends[1]);
  const bool said = opener_->say(message_of(request, host + dial.domain), std::move(connection), std::move(theirs));
  return said ? std::move(ours) : Fd();
}

Task<DialAnswer> Dialer::dial_proxy(Dial& dial, Way upstream, std::int64_t deadline_us, DialAnswer answer, Fd& proxy) {
  std::vector<Address> addresses;
  if (const auto* literal = std::get_if<Address>(&upstream->host)) {
    addresses.push_back(*literal);
  } else {
    Resolver::Found found = co_await resolver_.find(std::get<Name>(upstream->host), deadline_us);
    addresses = std::move(found.addresses);
  }
  const List& list = *dial.list;
  // The operator's word on where it is counts; else what is the container's own serves its inside alone.
  std::erase_if(addresses, [&](const Address& address) {
    return !proxy_permitted(list, *upstream, address) || (!upstream->of_policy && own_.has(address, poll_.now_us()));
  });
  if (addresses.empty()) co_return refused(answer, Refusal::upstream);
  if (addresses.size() > kMostAddresses) addresses.resize(kMostAddresses);
  co_return co_await try_each(std::move(addresses), upstream->port, deadline_us, answer, proxy);
}

}  // namespace caisson::egress
