#include "agent/bridge/openings.h"

#include <algorithm>

#include "agent/http/log.h"

namespace caisson::bridge {
namespace {

constexpr std::chrono::seconds kAgain{1};  // between two attempts at policies that could not be read

// Canonical JSON leaves out what is empty.
Openings::Opening opening_of(const json::Value& policy) {
  Openings::Opening out;
  const auto listed = [&policy](const char* field) {
    const auto found = policy.is_object() ? policy.find(field) : policy.end();
    return found != policy.end() && found->is_array() ? *found : json::Value::array();
  };
  for (const json::Value& port : listed("published_ports"))
    if (port.is_number_unsigned() && port.get<std::uint64_t>() <= 65535) out.ports.insert(port.get<std::uint16_t>());
  for (const json::Value& area : listed("api"))
    if (area.is_string()) out.api.push_back(area.get<std::string>());
  const std::string network = policy.is_object() ? policy.value("network", "") : "";
  out.goes_out = network != "none" && network != "loopback";
  return out;
}

}  // namespace

void Openings::policies_changed() {
  ++change_;
  changed_at_ = Clock::now();
  if (asked_) start_reading();  // what is open may have to end; no request need come for that
}

void Openings::start_reading() {
  if (std::exchange(reading_, true)) return;
  spawn(launcher_.executor(), "what policies open", read());
}

task<Openings::ByDomain> Openings::ask() {
  CO_TRY_ASSIGN(const json::Value all, co_await launcher_.policy(""));
  const auto domains = all.find("domains");
  if (domains == all.end() || !domains->is_object()) co_return fail(Code::io, "the launcher lists no domains");
  ByDomain out;
  for (const auto& [domain, about] : domains->items()) {
    CO_TRY_ASSIGN(const json::Value answer, co_await launcher_.policy(domain));
    if (Opening one = opening_of(answer.value("policy", json::Value())); !one.ports.empty() || !one.api.empty())
      out[domain] = std::move(one);
  }
  co_return std::move(out);
}

// Policies that are replaced while they are read are read again: those of two reloads are never mixed.
task<void> Openings::read() {
  Status done;
  while (!is_current() && done) {
    const std::uint64_t change = change_;
    auto found = co_await ask();
    if (change != change_) continue;
    open_ = found ? std::move(*found) : ByDomain();
    if (found) read_change_ = change;
    else done = std::unexpected(std::move(found).error().wrap("read which ports and areas policies open, so none is"));
  }
  if (!done) failed_at_ = Clock::now();
  reading_ = false;
  read_.notify_all();
  co_return done;
}

asio::awaitable<void> Openings::settle() {
  asked_ = true;
  if (!is_current() && Clock::now() >= failed_at_ + kAgain) start_reading();
  const auto deadline = Clock::now() + kPatience;
  while (reading_ && Clock::now() < deadline) {
    const bool told = co_await read_.wait_until(deadline);
    if (!told) break;
  }
}

asio::awaitable<bool> Openings::admits(std::string workspace, std::uint16_t port) {
  co_await settle();
  co_return is_current() && keeps(workspace, port);
}

bool Openings::keeps(const std::string& workspace, std::uint16_t port) const {
  const auto has_port = [port](const auto& of_domain) { return of_domain.second.ports.contains(port); };
  if (!counts() || std::ranges::none_of(open_, has_port)) return false;
  return std::ranges::any_of(launcher_.living(), [&](const std::shared_ptr<SessionHandle>& session) {
    const auto found = open_.find(session->domain);
    return found != open_.end() && has_port(*found) && session->workspace == workspace && !session->isolated && !session->ended;
  });
}

asio::awaitable<Openings::Opening> Openings::of(std::string domain) {
  co_await settle();
  const auto found = open_.find(domain);
  co_return is_current() && found != open_.end() ? found->second : Opening();
}

std::vector<std::string> Openings::areas(const std::string& domain) const {
  const auto found = open_.find(domain);
  return counts() && found != open_.end() ? found->second.api : std::vector<std::string>();
}

}  // namespace caisson::bridge
