#include "launcher/egress/dialer/dialer.h"

#include <algorithm>
#include <cstring>

#include "launcher/egress/dialer/sockets.h"

namespace caisson::egress {
namespace {

void put_address(DialAnswer& answer, const Address& address) {
  std::memcpy(answer.address, address.bytes.data(), sizeof answer.address);
  answer.v6 = address.v6 ? 1 : 0;
}

// The host of a request in its one form, or nothing: then it is no request of our door's.
std::optional<Host> canonical_host(std::string_view text) {
  auto host = read_host(text);
  if (!host || host_text(*host) != text) return std::nullopt;
  return std::move(*host);
}

}  // namespace

DialAnswer refused(DialAnswer answer, Refusal refusal) {
  answer.refusal = static_cast<std::uint32_t>(refusal);
  answer.error = EACCES;
  return answer;
}

Dialer::Dialer(Poll& poll, Fd launcher, NameFiles files, std::uint16_t dns_port)
    : poll_(poll),
      files_(std::move(files)),
      resolver_(poll, files_, dns_port),
      launcher_(
          poll, std::move(launcher),
          [this](const OrderHead& order, std::string_view text, std::vector<Fd> fds) {
            return ordered(order, text, std::move(fds));
          },
          [this] { done_ = true; }),
      upstreams_(poll, launcher_) {
  (void)launcher_.tell(Said::ready, 0);
}

bool Dialer::ordered(const OrderHead& order, std::string_view text, std::vector<Fd> fds) {
  switch (order.order) {
    case Order::open:
      return fds.size() == 1 && set_lists(order, fds.front());
    case Order::close:
      lists_.erase(order.workspace);
      grants_.erase(order.workspace);
      upstreams_.close(order.workspace);
      std::erase_if(dials_, [&order](const auto& entry) { return entry.second->workspace == order.workspace; });
      return fds.empty() && launcher_.tell(Said::closed, order.workspace);
    case Order::peer:
      return fds.size() == 1 && set_peer(std::move(fds.front()));
    case Order::opener:
      return fds.size() == 1 && set_opener(std::move(fds.front()));
    case Order::upstream:
      return fds.empty() && upstreams_.set(order.workspace, text);
    case Order::probe: {
      Probe probe;
      if (text.size() < sizeof probe || !fds.empty()) return false;
      std::memcpy(&probe, text.data(), sizeof probe);
      const DialRequest request{.workspace = order.workspace, .id = probe.id, .port = probe.port, .host_bytes = probe.host_bytes};
      return begin(kProbes + probe.id, request, text.substr(sizeof probe));
    }
    case Order::grants: {
      auto read = read_grants(text);
      if (read) grants_[order.workspace] = std::move(*read);
      return read && fds.empty();
    }
    case Order::member:
    case Order::inside:
    case Order::mappings:
    case Order::connector:
    case Order::dialer:
    case Order::secret:
    case Order::seed:
    case Order::ports:
      return false;  // the others'
  }
  return false;
}

bool Dialer::set_lists(const OrderHead& order, const Fd& file) {
  const auto bytes = bytes_of(file.get(), kMaxListsBytes);
  auto lists = bytes ? read_lists(*bytes) : fail(Code::io, "read the lists");
  if (!lists) return false;
  lists_[order.workspace] = std::move(*lists);
  return true;
}

std::shared_ptr<const List> Dialer::list_of(std::uint64_t workspace, std::string_view domain) const {
  const auto lists = lists_.find(workspace);
  if (lists == lists_.end()) return nullptr;
  const auto list = lists->second.of.find(domain);
  return list != lists->second.of.end() ? list->second : nullptr;
}

Verdict Dialer::judge(const Dial& dial) {
  Verdict verdict = decide(*dial.list, dial.host, dial.port);
  const auto grants = grants_.find(dial.workspace);
  if (verdict.kind != Verdict::Kind::none || dial.list->ask == Approver::nobody || grants == grants_.end()) return verdict;
  const Grant* grant = find_grant(grants->second, {dial.domain, ""}, dial.host, dial.port);
  if (grant != nullptr) verdict.kind = Verdict::Kind::allow, verdict.grant = grant->id;
  return verdict;
}

// The opener says nothing to the dialer.
bool Dialer::set_opener(Fd fd) {
  opener_.reset();
  opener_ = std::make_unique<Link>(poll_, std::move(fd), [](std::string_view, std::vector<Fd>) { return false; }, [] {});
  return true;
}

// What ran over the old pair was the old door's.
bool Dialer::set_peer(Fd fd) {
  drop_dials();
  door_.reset();
  door_ = std::make_unique<Link>(
      poll_, std::move(fd), [this](std::string_view message, std::vector<Fd> fds) { return asked(message, fds.size()); },
      [this] {
        if (door_->open()) return;
        drop_dials();
        done_ = done_ || door_->broken();
      });
  return true;
}

void Dialer::drop_dials() { dials_.erase(dials_.begin(), dials_.lower_bound(kProbes)); }

bool Dialer::asked(std::string_view message, std::size_t descriptors) {
  DialRequest request;
  if (message.size() < sizeof request || descriptors != 0) return false;
  std::memcpy(&request, message.data(), sizeof request);
  return begin(request.id, request, message.substr(sizeof request));
}

// text: the host, then the domain.
bool Dialer::begin(std::uint64_t key, const DialRequest& request, std::string_view text) {
  if (text.size() < request.host_bytes || dials_.contains(key)) return false;
  auto host = canonical_host(text.substr(0, request.host_bytes));
  if (!host) return false;
  const std::string domain(text.substr(request.host_bytes));
  const auto list = list_of(request.workspace, domain);
  Share share = list ? shares_.take(request.workspace) : nullptr;
  if (!share) {
    answer(key, request.workspace, refused({.id = request.id, .rule = -1}, !list ? Refusal::not_listed : Refusal::limit), {});
    return true;
  }
  Dial& made = *(dials_[key] = std::make_unique<Dial>(key, request.workspace, request.id, request.port, std::move(*host), domain,
                                                      list, std::move(share)));
  made.task.emplace(dial(made));
  return true;
}

Task<bool> Dialer::dial(Dial& dial) {
  Fd connection;
  const DialAnswer told = co_await choose_and_connect(dial, connection);
  answer(dial.key, dial.workspace, told, std::move(connection));
  // Not here, where its frame is still in use. Another dial may have the key by then, if this one went.
  poll_.later([this, key = dial.key] {
    const auto it = dials_.find(key);
    if (it != dials_.end() && it->second->task && it->second->task->done()) dials_.erase(it);
  });
  co_return true;
}

// The connection of a probe is closed: that it could be made is all that was asked.
void Dialer::answer(std::uint64_t key, std::uint64_t workspace, const DialAnswer& answer, Fd connection) {
  if (key >= kProbes) (void)launcher_.tell(Said::probed, workspace, message_of(answer));
  else if (door_) (void)door_->say(message_of(answer), std::move(connection));
}

Task<DialAnswer> Dialer::choose_and_connect(Dial& dial, Fd& connection) {
  const std::int64_t deadline_us = poll_.now_us() + kDialUs;
  const Verdict verdict = judge(dial);
  DialAnswer answer{.id = dial.id, .rule = verdict.rule};
  if (dial.port == 0) co_return refused(answer, Refusal::port);  // "any" to much of what comes after
  if (verdict.kind == Verdict::Kind::deny) co_return refused(answer, Refusal::rule);
  if (verdict.kind == Verdict::Kind::none) co_return refused(answer, Refusal::not_listed);
  const Way upstream = upstreams_.of(dial.workspace, dial.domain);
  const bool through = upstream && goes_through(*upstream, dial.host);
  // Its addresses are the proxy's business, and the list's only where they are known here. What a grant permits leads to public
  // ones alone, so it is resolved here.
  const bool resolve_here = upstream && (upstream->resolve_here || verdict.grant != 0);
  if (through && !resolve_here && std::holds_alternative<Name>(dial.host))
    co_return co_await dial_through(dial, upstream, host_text(dial.host), deadline_us, answer, connection);
  std::vector<Address> addresses = co_await choose(dial, verdict, answer, deadline_us);
  if (addresses.empty()) co_return answer;
  if (through) co_return co_await dial_through(dial, upstream, addresses.front().text(), deadline_us, answer, connection);
  co_return co_await try_each(std::move(addresses), dial.port, deadline_us, answer, connection);
}

Task<std::vector<Address>> Dialer::choose(Dial& dial, Verdict verdict, DialAnswer& answer, std::int64_t deadline_us) {
  std::vector<Address> addresses;
  if (const auto* literal = std::get_if<Address>(&dial.host)) {
    addresses.push_back(*literal);
  } else {
    Resolver::Found found = co_await resolver_.find(std::get<Name>(dial.host), deadline_us);
    if (found.kind == Resolver::Found::Kind::no_such_name) answer = refused(answer, Refusal::no_such_name);
    if (found.kind == Resolver::Found::Kind::no_answer) answer.error = ETIMEDOUT;
    addresses = std::move(found.addresses);
  }
  if (answer.error != 0 || addresses.empty()) co_return std::vector<Address>();
  const Address first = addresses.front();
  const auto metadata = std::ranges::find(addresses, AddressClass::metadata, [](const Address& one) { return class_of(one); });
  const std::optional<Address> alarm = metadata != addresses.end() ? std::optional(*metadata) : std::nullopt;
  std::erase_if(addresses, [&](const Address& address) {
    return !address_permitted(*dial.list, verdict, dial.host, address, dial.port) || own_.has(address, poll_.now_us());
  });
  if (addresses.empty()) {
    put_address(answer, alarm.value_or(first));
    answer = refused(answer, alarm                                        ? Refusal::canary
                             : std::holds_alternative<Address>(dial.host) ? Refusal::address
                                                                          : Refusal::rebinding);
  }
  if (addresses.size() > kMostAddresses) addresses.resize(kMostAddresses);
  co_return addresses;
}

// One after the other. One that does not answer gets its share of the time that is left, so that the last one is tried, too.
Task<DialAnswer> Dialer::try_each(std::vector<Address> addresses, std::uint16_t port, std::int64_t deadline_us, DialAnswer answer,
                                  Fd& connection) {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::int64_t left_us = deadline_us - poll_.now_us(),
                       share_us = left_us / static_cast<std::int64_t>(addresses.size() - i);
    Connected made = co_await connect_to(poll_, addresses[i], port, poll_.now_us() + share_us);
    put_address(answer, addresses[i]);
    answer.error = made.error;
    if (made.error != 0) continue;
    connection = std::move(made.fd);
    break;
  }
  co_return answer;
}

}  // namespace caisson::egress
