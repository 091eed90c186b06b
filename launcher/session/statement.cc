// What the launcher attests (launcher/attest/statement.schema.json): of the boot, and of one session. Every claim comes from the
// kernel or from what the launcher did, none from the agent or a session.
#include "launcher/attest/token.h"
#include "launcher/base/sys.h"
#include "launcher/session/manager.h"
#include "launcher/session/requests.h"

namespace caisson::session {
namespace {

// Of the kernel, and of the container that the launcher itself runs in, as it sees it from inside.
void add_outside(json::Value& statement, const confine::Features& features) {
  statement.update(json::parse(features.outside).value_or(json::Value::object()));
  statement["outer"]["cgroup"] = {{"usable", features.cgroup.ok()}, {"reason", features.cgroup_reason}};
}

}  // namespace

json::Value Manager::boot_statement() const {
  json::Value policies = json::Value::array();
  std::map<std::string, std::string> residual(settings_.residual.begin(),
                                              settings_.residual.end());  // said once, whatever number of domains has it
  for (const auto& [name, domain] : domains_) {
    json::Value row{{"domain", name},
                    {"digest", domain.policy->digest},
                    {"tier_required", tier_name(domain.policy->min_tier)},
                    {"state", domain.prepared ? "ready" : "unused"}};
    if (!domain.prepared) {
      policies.push_back(std::move(row));
      continue;
    }
    const confine::Plan& plan = *domain.prepared->plan;
    json::Value mechanisms = json::Value::object(), canaries = json::Value::object(), ids = json::Value::array();
    confine::Verified planned;
    std::copy(std::begin(plan.mechanisms), std::end(plan.mechanisms), planned.mechanisms);
    for (const json::Value& m : confine::mechanisms_json(plan, planned, {}, nullptr))
      mechanisms[m["name"].get<std::string>()] = m["state"];
    for (const json::Value& c : confine::canary_json(plan, domain.canary)) canaries[c["probe"].get<std::string>()] = c["answer"];
    for (const confine::Residual& r : plan.residual) {
      ids.push_back(r.id);
      residual[r.id] = r.what;
    }
    row["mechanisms"] = std::move(mechanisms);
    row["canaries"] = std::move(canaries);
    row["residual"] = std::move(ids);
    policies.push_back(std::move(row));
  }
  for (const auto& [name, why] : refused_domains_) policies.push_back({{"domain", name}, {"state", "refused"}, {"why", why}});
  json::Value texts = json::Value::array();
  for (const auto& [id, what] : residual) texts.push_back({{"id", id}, {"what", what}});
  json::Value out{{"kind", "boot"},
                  {"boot", {{"id", boot_id_}, {"started", boot_time_}}},
                  {"version", CAISSON_VERSION},
                  {"tier", tier_name(features_.tier())},
                  {"why_not_higher", confine::why_not_higher(features_)},
                  {"preset", settings_.preset},
                  {"policies", std::move(policies)},
                  {"residual", std::move(texts)}};
  add_outside(out, features_);
  return out;
}

json::Value Manager::session_statement(const Entry& entry) const {
  json::Value report = entry.session->report(&entry.canary);
  report.erase("timings_us");
  report.erase("prepared_us");
  report.erase("schema");
  const std::string id = entry.session->id();
  json::Value out{{"kind", "session"},
                  {"boot", {{"id", boot_id_}, {"started", boot_time_}}},
                  {"version", CAISSON_VERSION},
                  {"tier", report["tier"]},
                  {"session",
                   {{"id", id},
                    {"label", entry.label},
                    {"created", entry.created_at},
                    {"workspace", entry.workspace->name},
                    {"isolation", entry.request.value("isolation", "")}}},
                  {"audit", {{"file", id + ".ndjson"}, {"count", entry.log->count()}, {"head", entry.log->head()}}},
                  {"confinement", std::move(report)}};
  add_outside(out, features_);
  return out;
}

Result<json::Value> Manager::answer_attest(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"nonce", "session"}));
  TRY_ASSIGN(const auto nonce, json::get_string(request.body, "nonce"));
  if (nonce) TRY(attest::check_nonce(*nonce));
  json::Value statement;
  if (request.body.contains("session")) {
    TRY_ASSIGN(Entry * entry, find(c, request.body));
    if (entry->session->state() != State::running) return fail(Code::not_found, "the session is not running");
    TRY(entry->session->verify_again());
    statement = session_statement(*entry);
  } else {
    statement = boot_statement();
  }
  TRY_ASSIGN(std::string token, attest::make_token(*key_, statement, nonce.value_or(""), sys::realtime_ns() / 1'000'000'000));
  return json::Value{{"token", std::move(token)}, {"key", key_->jwk()}, {"statement", std::move(statement)}};
}

}  // namespace caisson::session
