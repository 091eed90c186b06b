#include "launcher/pid1/session/statement.h"

namespace caisson::session {
namespace {

// Of this start, the kernel, the container that the launcher itself runs in, as it sees it from inside, and the front door.
void add_outside(json::Value& statement, const Host& host) {
  statement.update(json::parse(host.features.outside).value_or(json::Value::object()));
  statement["outer"]["cgroup"] = {{"usable", host.features.cgroup.ok()}, {"reason", host.features.cgroup_reason}};
  statement.update({{"boot", {{"id", host.boot_id}, {"started", host.boot_time}}}, {"version", CAISSON_VERSION}});
}

// What a domain's sessions have here. residual: the texts of all domains, each said once, whatever number of them has it.
void add_prepared(json::Value& row, const confine::Plan& plan, const confine::ProbeResults& canary,
                  std::map<std::string, std::string>& residual) {
  confine::Verified planned;
  std::copy(std::begin(plan.mechanisms), std::end(plan.mechanisms), planned.mechanisms);
  row.update({{"mechanisms", json::Value::object()}, {"canaries", json::Value::object()}, {"residual", json::Value::array()}});
  for (const json::Value& m : confine::mechanisms_json(plan, planned, {}, nullptr))
    row["mechanisms"][m["name"].get<std::string>()] = m["state"];
  for (const json::Value& c : confine::canary_json(plan, canary)) row["canaries"][c["probe"].get<std::string>()] = c["answer"];
  for (const auto& [id, what] : plan.residual) row["residual"].push_back(id), residual[id] = what;
}

}  // namespace

json::Value boot_statement(const Host& host, const Domains& domains) {
  json::Value policies = json::Value::array();
  std::map<std::string, std::string> residual(host.settings.residual.begin(), host.settings.residual.end());
  for (const auto& [name, domain] : domains.in_force()) {
    json::Value row{{"domain", name},
                    {"digest", domain.policy->digest},
                    {"published_ports", domain.policy->published_ports},
                    {"api", domain.policy->api},
                    {"tier_required", tier_name(domain.policy->min_tier)},
                    {"state", domain.prepared ? "ready" : "unused"}};
    if (domain.prepared) add_prepared(row, *domain.prepared->plan, domain.canary, residual);
    policies.push_back(std::move(row));
  }
  for (const auto& [name, why] : domains.refused()) policies.push_back({{"domain", name}, {"state", "refused"}, {"why", why}});
  json::Value texts = json::Value::array();
  for (const auto& [id, what] : residual) texts.push_back({{"id", id}, {"what", what}});
  json::Value out{{"kind", "boot"},
                  {"tier", tier_name(host.features.tier())},
                  {"why_not_higher", confine::why_not_higher(host.features)},
                  {"preset", host.settings.preset},
                  {"policies", std::move(policies)},
                  {"residual", std::move(texts)}};
  add_outside(out, host);
  return out;
}

json::Value session_statement(const Host& host, const Entry& entry) {
  json::Value report = entry.session->report(&entry.canary);
  for (const char* name : {"timings_us", "prepared_us", "schema"}) report.erase(name);
  json::Value out{
      {"kind", "session"},
      {"tier", report["tier"]},
      {"session",
       {{"id", entry.session->id()},
        {"label", entry.label},
        {"created", entry.created_at},
        {"workspace", entry.workspace->name},
        {"isolation", entry.request.value("isolation", "")}}},
      {"audit", {{"file", entry.session->id() + ".ndjson"}, {"count", entry.log->count()}, {"head", entry.log->head()}}},
      {"confinement", std::move(report)}};
  add_outside(out, host);
  return out;
}

}  // namespace caisson::session
