#include "launcher/cli/learn/names.h"

#include <algorithm>
#include <variant>

#include "launcher/common/base/result.h"
#include "launcher/common/tables/fields.h"
#include "launcher/compiler/egress.h"

namespace caisson::cli::learn {
namespace {

using json::text_of;

// Without ports a rule means these.
const std::set<std::uint16_t> kUsual = {80, 443};

// What a rule of the name would have permitted. Everything else is refused whatever a list says, or because one says so.
bool a_rule_would_do(const std::string& refusal) { return refusal == "not_listed" || refusal == "port"; }

std::string why_not(const std::string& refusal) {
  if (refusal == "rule") return "a rule denies it";
  if (refusal == "canary") return "an alarm: nobody has a reason to ask for it";
  if (refusal == "rebinding") return "it leads to no public address: a rule of it needs \"private\"";
  if (refusal == "path" || refusal == "method")
    return "a rule permits it with other requests only: see its 'paths' and 'methods'";
  return "refused as " + refusal + ", which no rule of a name would change";
}

std::string times_text(std::uint64_t times) { return times == 1 ? "once" : std::to_string(times) + " times"; }

std::string ports_text(const std::set<std::uint16_t>& ports) {
  std::string out;
  for (const std::uint16_t port : ports) out += (out.empty() ? "" : ", ") + std::to_string(port);
  return out;
}

}  // namespace

void Names::leave_out(const std::string& host, const std::string& why) {
  if (left_out_.size() >= kMost) ++beyond_;
  else left_out_.try_emplace(host, why);
}

Names::Names(const policy::Policy& policy)
    : domain_(policy.domain),
      network_(policy.network),
      rules_(policy.egress),
      list_(egress::read_list(policy.egress).value_or(egress::List())) {}

void Names::take(const json::Value& record) {
  const std::string event = text_of(record, "event"), text = text_of(record, "host"), refusal = text_of(record, "refusal");
  const bool refused = event == "egress_refused";
  if ((!refused && event != "egress_connection") || text_of(record, "domain") != domain_ || text_of(record, "via") == "diagnose")
    return;
  const auto host = egress::read_host(text);
  if (!host || egress::host_text(*host) != text) return;  // what came was no host
  if (std::holds_alternative<egress::Address>(*host)) return leave_out(text, "an address, and names alone are proposed");
  if (refused && !a_rule_would_do(refusal)) return leave_out(text, why_not(refusal));
  const std::int64_t port = json::number_of(record, "port").value_or(0);
  if (port < 1 || port > 65535) return;
  const egress::Verdict now = decide(list_, *host, static_cast<std::uint16_t>(port));
  if (now.kind == egress::Verdict::Kind::deny) return leave_out(text, why_not("rule"));
  if (now.rule >= 0) return;  // a rule permits it already
  if (asked_.size() >= kMost && !asked_.contains(text)) return ++beyond_, void();
  Asked& asked = asked_[text];
  ++(refused ? asked.refused : asked.made);
  if (asked.ports.size() < kMostPorts || asked.ports.contains(static_cast<std::uint16_t>(port)))
    asked.ports.insert(static_cast<std::uint16_t>(port));
  else leave_out(text, "it was asked for at more than " + std::to_string(kMostPorts) + " ports");
}

json::Value Names::rule(const std::string& name, const Asked& asked, const std::string& source) {
  json::Value out = {{"host", name}};
  if (asked.ports != kUsual) out["ports"] = asked.ports;
  std::string times;
  if (asked.made != 0) times = "reached " + times_text(asked.made);
  if (asked.refused != 0) times += (times.empty() ? "" : ", ") + ("refused " + times_text(asked.refused));
  out["why"] = "learnt, " + times + " in " + source;
  return out;
}

void Names::add_to(json::Value& file, const std::string& source) const {
  if (empty()) return;
  // Rules that allow replace the domain's, so those come along; rules that deny are never lost.
  json::Value rules = json::Value::array();
  for (const json::Value& rule : policy::egress_json(rules_))
    if (!rule.value("deny", false)) rules.push_back(rule);
  for (const auto& [name, asked] : asked_) rules.push_back(rule(name, asked, source));
  file["egress"] = std::move(rules);
  const bool out = policy::goes_out(network_);
  if (network_ != policy::Network::allowlist) file["network"] = "allowlist";
  if (out && network_ != policy::Network::allowlist) file["why"]["/network"] = "what its sessions asked for is known by name now";
  if (!out) file["weaken"].push_back({{"field", "/network"}, {"why", "its sessions ask for the names of its rules"}});
  else file["weaken"].push_back({{"field", "/egress"}, {"why", "names that " + source + " asked for"}});
}

std::string Names::difference() const {
  std::string out;
  for (const auto& [name, asked] : asked_) out += "+ egress " + name + ": " + ports_text(asked.ports) + "\n";
  return out;
}

std::vector<std::string> Names::notes() const {
  std::vector<std::string> out;
  for (const auto& [host, why] : left_out_) out.push_back("is not proposed: " + host + ": " + why);
  if (beyond_ != 0) out.push_back(std::to_string(beyond_) + " records were beyond what is kept: the proposal is not whole");
  out.emplace_back("a session may have asked for what it should not: read each name before you allow it");
  return out;
}

}  // namespace caisson::cli::learn
