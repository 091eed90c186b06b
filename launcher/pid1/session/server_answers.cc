// What the launcher answers about itself: policies, workspaces, logs, attestation. Checked as in answers.cc.
#include <algorithm>

#include "launcher/common/attest/token.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/policy/frozen.h"
#include "launcher/pid1/session/operations.h"
#include "launcher/pid1/session/requests.h"
#include "launcher/pid1/session/statement.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kReloadUs = 1'000'000;
constexpr json::Bounds kOwnText{.max_bytes = policy::kMaxFrozen, .max_depth = 32, .max_values = policy::kMaxFrozen};

}  // namespace

Result<json::Value> Operations::answer_hello(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const auto keep, json::get_int(request.body, "keep"));
  TRY_ASSIGN(const auto protocol, json::get_int(request.body, "protocol"));
  if (protocol != ipc::kProtocolVersion)
    return fail(Code::protocol, "this launcher speaks protocol " + std::to_string(ipc::kProtocolVersion));
  std::vector<Fd> fds;
  if (keep && clients_.role(c.number()) == Role::agent) {
    TRY_ASSIGN(fds.emplace_back(), sessions_.keep_file(*keep));
  }
  c.opened();
  const auto& domains = domains_.in_force();
  json::Value names = json::Value::array();
  for (const auto& [name, domain] : domains) names.push_back(name);
  const std::string home = domains.empty() ? "/home/gem" : domains.begin()->second.plan->policy->home_path;
  c.reply(request.id,
          {{"protocol", ipc::kProtocolVersion},
           {"version", CAISSON_VERSION},
           {"tier", tier_name(features().tier())},
           {"domains", names},
           {"refused_domains", domains_.refused()},
           {"preset", settings_.preset},
           {"home", home},
           {"workspace", settings_.default_cwd.empty() ? home : settings_.default_cwd},
           {"max_sessions", settings_.max_sessions}},
          std::move(fds));
  return json::Value();
}

Result<json::Value> Operations::answer_policy(ipc::Connection&, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const auto name, json::get_string(request.body, "domain"));
  const auto& in_force = domains_.in_force();
  if (name) {
    const auto domain = in_force.find(*name);
    if (domain == in_force.end()) return fail(Code::not_found, "no policy domain " + quote(*name));
    TRY_ASSIGN(json::Value policy, json::parse(domain->second.plan->canonical, kOwnText));
    policy["digest"] = domain->second.plan->policy->digest;
    return json::Value{{"policy", std::move(policy)}};
  }
  json::Value domains = json::Value::object();
  for (const auto& [key, d] : in_force)
    domains[key] = {{"digest", d.policy->digest}, {"description", d.policy->description}, {"ready", d.prepared != nullptr}};
  return json::Value{
      {"digest", domains_.digest()}, {"preset", settings_.preset}, {"domains", domains}, {"refused", domains_.refused()}};
}

// Every reload reads and tries all policies: a client that asks for nothing else must not keep the launcher from its work.
Result<json::Value> Operations::answer_reload(ipc::Connection& c, const ipc::Connection::Request& request) {
  const Role role = clients_.role(c.number());
  if (role == Role::agent && sys::monotonic_us() < next_reload_us_)
    return fail(Code::limit, "the policies were reloaded a moment ago");
  begin(answer_when(c.number(), request, reload_for(role)));
  return json::Value();  // answered when it is done
}

Task<Result<json::Value>> Operations::reload_for(Role role) {
  const std::int64_t now = sys::monotonic_us();
  const std::string before = domains_.digest();
  json::Value problems = json::Value::array();
  const Problems found = co_await load_again(role == Role::agent ? "agent" : "operator");
  for (const auto& p : found) problems.push_back(p.text());
  const std::int64_t end = sys::monotonic_us();
  next_reload_us_ = end + std::max(kReloadUs, 3 * (end - now));  // also where reading hangs, most of the time is the others'
  co_return json::Value{{"accepted", problems.empty()}, {"old", before}, {"new", domains_.digest()}, {"problems", problems}};
}

Result<json::Value> Operations::answer_workspace_create(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const WorkspaceRequest wanted, workspace_request(request.body, settings_.workspaces));
  TRY(workspaces_.admit(wanted));
  workspaces_.find_home(wanted, [this, wanted, number = c.number(), request](const Result<json::Value>& home) {
    begin(answer_when(number, request, workspaces_.make(wanted, home)));
  });
  return json::Value();  // answered by then
}

Result<json::Value> Operations::answer_workspace_list(ipc::Connection&, const ipc::Connection::Request&) {
  return json::Value{{"workspaces", workspaces_.list()}, {"denied", sessions_.denied()}};
}

// Both ops.
Result<json::Value> Operations::answer_workspace_pace(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(Workspace * workspace, workspaces_.find(request.body));
  return workspaces_.pace(*workspace, request.op == ipc::Op::workspace_pause,
                          [this, number = c.number(), request](Result<json::Value> done) {
                            if (auto* client = clients_.find(number)) answered(*client, request, std::move(done));
                          });
}

Result<json::Value> Operations::answer_workspace_destroy(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const auto reason, json::get_string(request.body, "reason"));
  TRY_ASSIGN(Workspace * workspace, workspaces_.find(request.body));
  TRY(workspaces_.destroy(*workspace, reason && !reason->empty() ? reason->substr(0, 256) : "destroyed", c.number(), request.id));
  return json::Value();  // answered when nothing is left
}

// Logs are not a client's own: who may ask for them may read those of all sessions, and of none but sessions.
Result<json::Value> Operations::answer_audit_list(ipc::Connection&, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const auto before, json::get_string(request.body, "before"));
  TRY_ASSIGN(const auto limit, json::get_int(request.body, "limit"));
  TRY_ASSIGN(json::Value list, logs_.list(before.value_or(""), limit.value_or(100)));
  return json::Value{{"sessions", std::move(list)}};
}

Result<json::Value> Operations::answer_audit_open(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const std::string id, need_string(request.body, "session"));
  TRY_ASSIGN(const auto segment, json::get_int(request.body, "segment"));
  std::vector<Fd> fds;
  TRY_ASSIGN(fds.emplace_back(), logs_.open(id, segment.value_or(0)));
  c.reply(request.id, {{"running", sessions_.find(id) != nullptr}}, std::move(fds));
  return json::Value();  // answered, with the descriptor
}

Result<json::Value> Operations::answer_attest(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const auto nonce, json::get_string(request.body, "nonce"));
  if (nonce) TRY(attest::check_nonce(*nonce));
  json::Value statement;
  if (request.body.contains("session")) {
    TRY_ASSIGN(Entry * entry, find(c, request.body));
    if (entry->session->state() != State::running) return fail(Code::not_found, "the session is not running");
    TRY(entry->session->verify_again());
    statement = session_statement(host_, *entry);
  } else {
    statement = boot_statement(host_, domains_);
  }
  TRY_ASSIGN(std::string token,
             attest::make_token(*host_.key, statement, nonce.value_or(""), sys::realtime_ns() / 1'000'000'000));
  return json::Value{{"token", std::move(token)}, {"key", host_.key->jwk()}, {"statement", std::move(statement)}};
}

Result<json::Value> Operations::answer_agent_restart(ipc::Connection&, const ipc::Connection::Request&) {
  if (!restart_agent_) return fail(Code::unavailable, "there is no agent");
  restart_agent_();
  return json::Value::object();
}

}  // namespace caisson::session
