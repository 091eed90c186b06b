#include "agent/proxy/published.h"

#include <algorithm>

#include "agent/http/log.h"

namespace caisson::proxy {
namespace {

using bridge::Clock;

constexpr std::chrono::seconds kAgain{1};  // between two attempts at policies that could not be read

std::set<std::uint16_t> published_by(const json::Value& policy) {
  std::set<std::uint16_t> out;
  const auto ports = policy.is_object() ? policy.find("published_ports") : policy.end();
  if (ports == policy.end() || !ports->is_array()) return out;
  for (const json::Value& port : *ports)
    if (port.is_number_unsigned() && port.get<std::uint64_t>() <= 65535) out.insert(port.get<std::uint16_t>());
  return out;
}

}  // namespace

void PublishedPorts::policies_changed() {
  ++change_;
  changed_at_ = Clock::now();
  if (asked_) start_reading();  // what is open may have to end; no request need come for that
}

void PublishedPorts::start_reading() {
  if (std::exchange(reading_, true)) return;
  spawn(launcher_.executor(), "published ports", read());
}

task<PublishedPorts::Ports> PublishedPorts::ask() {
  CO_TRY_ASSIGN(const json::Value all, co_await launcher_.policy(""));
  const auto domains = all.find("domains");
  if (domains == all.end() || !domains->is_object()) co_return fail(Code::io, "the launcher lists no domains");
  Ports out;
  for (const auto& [domain, about] : domains->items()) {
    CO_TRY_ASSIGN(const json::Value answer, co_await launcher_.policy(domain));
    if (auto ports = published_by(answer.value("policy", json::Value())); !ports.empty()) out[domain] = std::move(ports);
  }
  co_return std::move(out);
}

// Policies that are replaced while they are read are read again: ports of two reloads are never mixed.
task<void> PublishedPorts::read() {
  Status done;
  while (!is_current() && done) {
    const std::uint64_t change = change_;
    auto found = co_await ask();
    if (change != change_) continue;
    ports_ = found ? std::move(*found) : Ports();
    if (found) read_change_ = change;
    else done = std::unexpected(std::move(found).error().wrap("read which ports are published, so none is"));
  }
  if (!done) failed_at_ = Clock::now();
  reading_ = false;
  read_.notify_all();
  co_return done;
}

asio::awaitable<bool> PublishedPorts::admits(std::string workspace, std::uint16_t port) {
  asked_ = true;
  if (!is_current() && Clock::now() >= failed_at_ + kAgain) start_reading();
  const auto deadline = Clock::now() + kPatience;
  while (reading_ && Clock::now() < deadline) {
    const bool told = co_await read_.wait_until(deadline);
    if (!told) break;
  }
  co_return is_current() && keeps(workspace, port);
}

bool PublishedPorts::keeps(const std::string& workspace, std::uint16_t port) const {
  if (!is_current() && Clock::now() >= changed_at_ + kPatience) return false;
  const auto has_port = [port](const auto& of_domain) { return of_domain.second.contains(port); };
  if (std::ranges::none_of(ports_, has_port)) return false;
  return std::ranges::any_of(launcher_.living(), [&](const std::shared_ptr<bridge::SessionHandle>& session) {
    const auto ports = ports_.find(session->domain);
    return ports != ports_.end() && ports->second.contains(port) && session->workspace == workspace && !session->isolated &&
           !session->ended;
  });
}

}  // namespace caisson::proxy
