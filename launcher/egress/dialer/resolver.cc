#include "launcher/egress/dialer/resolver.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "launcher/egress/dialer/sockets.h"

namespace caisson::egress {
namespace {

constexpr int kRounds = 2;  // over all servers
constexpr int kOthersATurn = 32;
constexpr std::int64_t kPatienceUs = 2'000'000;
constexpr std::size_t kMostKept = 2048, kMostTcp = 16 * 1024;
constexpr std::uint32_t kLeastTtl = 1, kMostTtl = 300;

// nullopt: an id that can be guessed is worse than no answer.
std::optional<std::uint16_t> random_id() {
  std::uint16_t id = 0;
  if (::getrandom(&id, sizeof id, 0) != static_cast<ssize_t>(sizeof id)) return std::nullopt;
  return id;
}

}  // namespace

Task<Resolver::Found> Resolver::find(Name name, std::int64_t deadline_us) {
  Found found;
  if (const auto* of_file = files_.addresses_of(name); of_file != nullptr) {
    found.kind = Found::Kind::addresses, found.addresses = *of_file;
    co_return found;
  }
  if (const auto it = kept_.find(name.text); it != kept_.end() && it->second.until_us > poll_.now_us())
    co_return it->second.found;
  Task<Reply> asking_v4 = ask(name, kTypeA, deadline_us), asking_v6 = ask(name, kTypeAaaa, deadline_us);
  const Reply v4 = co_await asking_v4, v6 = co_await asking_v6;
  found.ttl = kMostTtl;
  for (const Reply* reply : {&v4, &v6}) {
    found.addresses.insert(found.addresses.end(), reply->answer.addresses.begin(), reply->answer.addresses.end());
    if (!reply->answer.addresses.empty()) found.ttl = std::clamp(reply->answer.ttl, kLeastTtl, found.ttl);
  }
  // Of a name without addresses both answers must say so: one that is missing may have been the one with the addresses.
  if (!found.addresses.empty()) found.kind = Found::Kind::addresses;
  else if (v4.came && v6.came) found.kind = Found::Kind::no_such_name, found.ttl = kLeastTtl;
  keep(name, found);
  co_return found;
}

void Resolver::keep(const Name& name, const Found& found) {
  if (found.kind == Found::Kind::no_answer) return;
  if (kept_.size() >= kMostKept)
    std::erase_if(kept_, [this](const auto& entry) { return entry.second.until_us <= poll_.now_us(); });
  if (kept_.size() >= kMostKept) kept_.clear();
  kept_[name.text] = {found, poll_.now_us() + std::int64_t{found.ttl} * 1'000'000};
}

Task<Resolver::Reply> Resolver::ask(Name name, std::uint16_t type, std::int64_t deadline_us) {
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<Address> servers = files_.servers();
    for (const Address& server : servers) {
      const std::int64_t until_us = std::min(deadline_us, poll_.now_us() + kPatienceUs);
      if (until_us <= poll_.now_us()) co_return Reply();
      Reply reply = co_await ask_by_udp(name, type, server, until_us);
      if (reply.came && reply.answer.truncated) reply = co_await ask_by_tcp(name, type, server, until_us);
      // A server that cannot tell is no answer; the next one may.
      const DnsCode code = reply.answer.code;
      if (reply.came && (code == DnsCode::no_error || code == DnsCode::no_such_name)) co_return reply;
    }
  }
  co_return Reply();
}

// What is not the answer to this question is not heard: whoever guesses the port has to guess the id, too, and each guess is one
// datagram.
Task<Resolver::Reply> Resolver::ask_by_udp(Name name, std::uint16_t type, Address server, std::int64_t deadline_us) {
  Reply reply;
  const std::optional<std::uint16_t> id = random_id();
  Fd fd = datagrams_to(server, port_);
  if (!id || !fd) co_return reply;
  Stream datagrams(poll_, std::move(fd));
  if (datagrams.write(dns_query(*id, name, type)) < 0) co_return reply;
  static std::array<char, 4096> buffer;  // not in the frame: nothing of it is used after a wait
  for (int others = 0;;) {
    const ssize_t got = datagrams.read(buffer);
    if (got < 0 && errno != EAGAIN && errno != EINTR) co_return reply;  // nothing listens there
    if (got > 0) {
      const std::string_view message(buffer.data(), static_cast<std::size_t>(got));
      reply.came = read_dns_answer(message, *id, name, type, reply.answer).done();
      if (reply.came) co_return reply;
      if (++others % kOthersATurn != 0) continue;
      Told turn(poll_, poll_.now_us());  // a flood of them keeps neither the loop
      (void)co_await turn;
      if (poll_.now_us() >= deadline_us) co_return reply;  // nor this question
    } else if (got < 0 && errno == EAGAIN) {
      const bool stirred = co_await Stirred(deadline_us, datagrams);
      if (!stirred) co_return reply;
    }
  }
}

Task<Resolver::Reply> Resolver::ask_by_tcp(Name name, std::uint16_t type, Address server, std::int64_t deadline_us) {
  Reply reply;
  const std::optional<std::uint16_t> id = random_id();
  Connected connected = co_await connect_to(poll_, server, port_, deadline_us);
  if (!id || !connected.fd) co_return reply;
  Stream stream(poll_, std::move(connected.fd));
  const std::string query = dns_query(*id, name, type);
  std::string sent, came;
  put_number(sent, static_cast<std::uint32_t>(query.size()), 2);
  sent += query;
  if (stream.write(sent) != static_cast<ssize_t>(sent.size())) co_return reply;  // an empty socket takes so little at once
  while (came.size() < kMostTcp) {
    static std::array<char, 2048> buffer;
    const ssize_t got = stream.read(buffer);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) co_return reply;
    if (got > 0) came.append(buffer.data(), static_cast<std::size_t>(got));
    if (came.size() >= 2) {
      const std::size_t size = static_cast<unsigned char>(came[0]) * 256U + static_cast<unsigned char>(came[1]);
      if (came.size() >= size + 2) {
        reply.came = read_dns_answer(std::string_view(came).substr(2, size), *id, name, type, reply.answer).done() &&
                     !reply.answer.truncated;
        co_return reply;
      }
    }
    if (got < 0 && errno == EAGAIN) {
      const bool stirred = co_await Stirred(deadline_us, stream);
      if (!stirred) co_return reply;
    }
  }
  co_return reply;
}

}  // namespace caisson::egress
