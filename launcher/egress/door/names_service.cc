#include "launcher/egress/door/names_service.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>

#include "launcher/common/base/sys.h"
#include "launcher/egress/door/talk.h"

namespace caisson::egress {
namespace {

constexpr int kMostATurn = 32;
constexpr std::size_t kMostTcp = 65'535;
constexpr std::string_view kReverse = ".in-addr.arpa";

// The address of a name for the other direction, d.c.b.a.in-addr.arpa (RFC 1035 3.5).
std::optional<Address> reversed(std::string_view text) {
  if (!text.ends_with(kReverse)) return std::nullopt;
  text.remove_suffix(kReverse.size());
  Address out;
  for (std::size_t i = 4; i-- > 0;) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.bytes[i]);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty() != (i == 0) || (i > 0 && text.front() != '.')) return std::nullopt;
    if (i > 0) text.remove_prefix(1);
  }
  return out;
}

bool is_localhost(std::string_view name) { return name == "localhost" || name.ends_with(".localhost"); }

}  // namespace

NamesService::~NamesService() {
  if (fd_) workspace_.house.poll.unwatch(fd_.get(), *this);
}

Status NamesService::begin(Fd fd) {
  fd_ = std::move(fd);
  TRY(sys::set_nonblocking(fd_.get(), true));
  return workspace_.house.poll.watch(fd_.get(), EPOLLIN, *this);
}

void NamesService::ready(std::uint32_t) {
  for (int i = 0; i < kMostATurn; ++i)
    if (!answer_one()) return;
}

// The answer carries the same control message as the question: where it was sent to is where it comes from.
bool NamesService::answer_one() {
  std::array<char, 2048> bytes;
  sockaddr_storage from{};
  alignas(cmsghdr) std::array<char, 256> control{};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{.msg_name = &from,
                 .msg_namelen = sizeof from,
                 .msg_iov = &part,
                 .msg_iovlen = 1,
                 .msg_control = control.data(),
                 .msg_controllen = control.size()};
  const ssize_t got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (got < 0) return errno == EINTR;
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return true;
  auto text = answer({bytes.data(), static_cast<std::size_t>(got)}, true);
  if (!text) return true;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      info.ipi_spec_dst = info.ipi_addr, info.ipi_ifindex = 0;
      std::memcpy(CMSG_DATA(c), &info, sizeof info);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      info.ipi6_ifindex = 0;
      std::memcpy(CMSG_DATA(c), &info, sizeof info);
    }
  }
  part = {text->data(), text->size()};
  (void)::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);  // one that is lost is asked again
  return true;
}

std::optional<std::string> NamesService::answer(std::string_view message, bool by_udp) {
  DnsQuestion question;
  const Outcome read = read_dns_question(message, question);
  const std::size_t most = by_udp ? question.most : kMostTcp;
  const std::int64_t now_us = workspace_.house.poll.now_us();
  workspace_.records.asked();
  if (!read.done()) return question.code ? std::optional(dns_reply(question, *question.code, {}, most)) : std::nullopt;
  std::optional<DnsRecord> record;
  const bool in_time = budget_.take(now_us);
  const auto* name = question.host ? std::get_if<Name>(&*question.host) : nullptr;
  if (!in_time && name != nullptr) refuse(*name, Refusal::rate, -1);
  const DnsCode code = in_time ? look_up(question, record) : DnsCode::refused;
  return dns_reply(question, code, record ? std::span(&*record, 1) : std::span<DnsRecord>(), most);
}

DnsCode NamesService::look_up(const DnsQuestion& question, std::optional<DnsRecord>& record) {
  const auto* name = question.host ? std::get_if<Name>(&*question.host) : nullptr;
  if (name == nullptr) return DnsCode::no_such_name;
  if (name->text.ends_with(".arpa")) return question.type == kTypePtr ? pointer(*name, record) : DnsCode::no_such_name;
  return address(*name, question.type == kTypeA, record);
}

DnsCode NamesService::pointer(const Name& name, std::optional<DnsRecord>& record) {
  const auto address = reversed(name.text);
  const auto of = address ? workspace_.names.name_of(*address, workspace_.house.poll.now_us()) : std::nullopt;
  if (!of) return DnsCode::no_such_name;
  record = DnsRecord{.type = kTypePtr, .ttl = kTtl, .data = wire_name(*of)};
  return DnsCode::no_error;
}

// A datagram's session is not asked for: a name gets an address here and nothing outside hears of it, and whoever connects is
// asked again, by its own list. So only what every list denies is denied.
Verdict NamesService::decide_for_all(const Name& name) const {
  Verdict out{.kind = Verdict::Kind::deny};
  for (const auto& [domain, way] : workspace_.ways) {
    const Verdict one = decide_name(*way->list, name);
    if (one.kind != Verdict::Kind::deny) return one;
    out = {.kind = one.kind, .rule = one.rule, .alarm = one.alarm || out.alarm};
  }
  return out;
}

// A name of which no rule says anything gets an address, too: so its refusal can be told in HTTP, and has a port. Only IPv4
// addresses: what asks for another type hears that the name has none.
DnsCode NamesService::address(const Name& name, bool wanted, std::optional<DnsRecord>& record) {
  if (is_localhost(name.text)) {
    if (wanted) record = address_record({.bytes = {127, 0, 0, 1}}, kTtl);
    return DnsCode::no_error;
  }
  const Verdict verdict = decide_for_all(name);
  if (verdict.kind == Verdict::Kind::deny)
    return refuse(name, verdict.alarm ? Refusal::canary : Refusal::rule, verdict.rule), DnsCode::no_such_name;
  if (!wanted) return DnsCode::no_error;
  const auto address = workspace_.names.address_of(name, workspace_.house.poll.now_us());
  if (!address)
    return refuse(name, Refusal::limit, verdict.rule, "the workspace has asked for too many names within the hour"),
           DnsCode::refused;
  record = address_record(*address, kTtl);
  return DnsCode::no_error;
}

void NamesService::refuse(const Name& name, Refusal refusal, int rule, std::string_view detail) {
  Facts facts;
  facts.via = Via::dns, facts.host = name.text, facts.rule = rule, facts.refusal = refusal, facts.detail = detail;
  facts.generation = workspace_.generation;
  workspace_.records.refused({}, facts, workspace_.house.poll.now_us());
}

Task<bool> talk_names(Connection& connection) {
  NamesService* names = connection.workspace.names_service();
  connection.facts.via = Via::dns;
  for (;;) {
    const Outcome found = find_dns_message(connection.ahead);
    if (!found.done()) {
      if (found.refused()) co_return false;
      const bool more = co_await read_more(connection, connection.now_us() + Connection::kHandshakeUs);
      if (!more) co_return false;
      continue;
    }
    const auto text = names->answer(std::string_view(connection.ahead).substr(2, found.size - 2), false);
    connection.ahead.erase(0, found.size);
    if (!text) co_return false;
    std::string framed;
    put_number(framed, static_cast<std::uint32_t>(text->size()), 2);
    framed += *text;
    const bool sent = co_await connection.send(std::move(framed), connection.now_us() + Connection::kHandshakeUs);
    if (!sent) co_return false;
    // Whoever writes and reads as fast as we do would never let us wait, and with us all others.
    Told others(connection.workspace.house.poll, connection.now_us());
    (void)co_await others;
  }
}

}  // namespace caisson::egress
