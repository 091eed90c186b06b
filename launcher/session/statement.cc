// What the launcher attests (launcher/attest/statement.schema.json): of the boot, and of one session. Every claim comes from the
// kernel or from what the launcher did, none from the agent or a session.
#include <sys/utsname.h>

#include <sstream>

#include "launcher/attest/token.h"
#include "launcher/base/sys.h"
#include "launcher/session/manager.h"
#include "launcher/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxProcFile = 64 * 1024;

std::string proc_text(const char* path) {
  std::string text = sys::read_file(path, kMaxProcFile).value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

// "0 100000 65536" for each line of a map.
json::Value id_map(const char* path) {
  json::Value out = json::Value::array();
  std::istringstream lines(proc_text(path));
  for (unsigned inside, outside, count; out.size() < 32 && lines >> inside >> outside >> count;)
    out.push_back({{"inside", inside}, {"outside", outside}, {"count", count}});
  return out;
}

json::Value kernel_json(const confine::Features& features) {
  utsname name{};
  (void)::uname(&name);
  json::Value lsm = json::Value::array();
  std::istringstream list(proc_text("/sys/kernel/security/lsm"));
  for (std::string one; std::getline(list, one, ',');) lsm.push_back(one);
  return {
      {"release", features.kernel}, {"machine", name.machine}, {"landlock_abi", features.landlock_abi}, {"lsm", std::move(lsm)}};
}

// The container that the launcher itself runs in, as it sees it from inside.
json::Value outer_json(const confine::Features& features) {
  const std::string status = sys::read_file("/proc/self/status", kMaxProcFile).value_or("");
  return {
      {"uid_map", id_map("/proc/self/uid_map")},
      {"gid_map", id_map("/proc/self/gid_map")},
      {"uid_remapped", features.uid_remapped},
      {"capabilities", {{"effective", sys::status_field(status, "CapEff")}, {"bounding", sys::status_field(status, "CapBnd")}}},
      {"no_new_privs", features.no_new_privs},
      {"seccomp", {{"mode", features.outer_seccomp}, {"filters", sys::status_field(status, "Seccomp_filters")}}},
      {"lsm_label", features.lsm_label},
      {"cgroup", {{"usable", features.cgroup.ok()}, {"reason", features.cgroup_reason}}},
      {"proc_sys_writable", features.proc_sys_writable}};
}

}  // namespace

json::Value Manager::boot_statement() const {
  json::Value policies = json::Value::array();
  std::map<std::string, std::string> residual;  // said once, whatever number of domains has it
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
  return {{"kind", "boot"},
          {"boot", {{"id", boot_id_}, {"started", boot_time_}}},
          {"version", CAISSON_VERSION},
          {"kernel", kernel_json(features_)},
          {"outer", outer_json(features_)},
          {"tier", tier_name(features_.tier())},
          {"why_not_higher", confine::why_not_higher(features_)},
          {"preset", settings_.preset},
          {"policies", std::move(policies)},
          {"residual", std::move(texts)}};
}

json::Value Manager::session_statement(const Entry& entry) const {
  json::Value report = entry.session->report(&entry.canary);
  report.erase("timings_us");
  report.erase("prepared_us");
  report.erase("schema");
  const std::string id = entry.session->id();
  return {{"kind", "session"},
          {"boot", {{"id", boot_id_}, {"started", boot_time_}}},
          {"version", CAISSON_VERSION},
          {"kernel", kernel_json(features_)},
          {"outer", outer_json(features_)},
          {"tier", report["tier"]},
          {"session",
           {{"id", id},
            {"label", entry.label},
            {"created", entry.created_at},
            {"workspace", entry.workspace->name},
            {"isolation", entry.request.value("isolation", "")}}},
          {"audit", {{"file", id + ".ndjson"}, {"count", entry.log->count()}, {"head", entry.log->head()}}},
          {"confinement", std::move(report)}};
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
