#include "launcher/pid1/session/operations.h"

#include <fcntl.h>

#include <algorithm>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/query.h"
#include "launcher/pid1/session/policies.h"
#include "launcher/pid1/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::uint64_t kLauncherSegment = 16ULL << 20;

}  // namespace

Operations::Operations(Settings settings, Loop& loop)
    : host_{.settings = std::move(settings), .loop = loop},
      loop_(loop),
      clients_(
          host_, [this](ipc::Connection& c, ipc::Connection::Request request) { on_request(c, std::move(request)); },
          [this](std::uint64_t number, Role role) { sessions_.client_gone(number, role); }),
      uids_(host_),
      workspaces_(host_, clients_, sessions_),
      domains_(host_, uids_, workspaces_.main(),
               [this](const Workspace& of, const std::string& domain) { sessions_.end_ready("grants_changed", &of, domain); }),
      logs_(host_, domains_, [this](const std::string& session) { return sessions_.find(session) != nullptr; }),
      sessions_(host_, clients_, domains_, uids_, logs_, [this](const std::string& workspace) { workspaces_.settle(workspace); }),
      watchdog_(host_, sessions_) {}

Result<std::unique_ptr<Operations>> Operations::create(Settings settings, Loop& loop) {
  std::unique_ptr<Operations> made(new Operations(std::move(settings), loop));
  Operations* self = made.get();
  Task<Status> prepared = self->prepare();
  TRY(loop.run([&prepared] { return prepared.done(); }));
  TRY(prepared.take());
  loop.before_reap(self, [self] { return self->sessions_.poll_children(); });
  self->watchdog_.start();
  self->sessions_.refill_all();
  self->logs_.sweep();
  return made;
}

Task<Status> Operations::prepare() {
  const policy::LoadResult loaded = co_await read_policies(loop_, settings_);
  if (!loaded.problems.empty()) {
    std::string text = "the policies have problems, nothing is started:";
    for (const auto& p : loaded.problems) text += "\n  " + p.text();
    co_return fail(Code::invalid_argument, text);
  }
  const audit::Tail before =
      audit::tail_of(sys::open(settings_.audit_dir + "/launcher.ndjson", O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  CO_TRY_ASSIGN(audit::Log log, audit::Log::create_rotated(settings_.audit_dir, "launcher", {kLauncherSegment, 0, true}));
  host_.log = std::make_unique<audit::Log>(std::move(log));
  CO_TRY_ASSIGN(host_.key, settings_.attest_key.empty() ? attest::Key::generate() : attest::Key::load(settings_.attest_key));
  CO_TRY_ASSIGN(host_.features, co_await confine::ask_features(loop_));
  if (host_.features.cgroup.ok()) {
    auto root = confine::CgroupRoot::open(confine::CgroupRoot::look().path);
    if (root) {
      host_.cgroups = std::make_unique<confine::CgroupRoot>(std::move(*root));
      if (!host_.cgroups->io()) host_.features.io.error = ENOTSUP;
    } else {
      // Said like any other missing mechanism, in probe, plan and reports; a policy that requires cgroup refuses.
      host_.features.cgroup = {root.error().sys != 0 ? root.error().sys : ENOTSUP, "cgroup v2"};
      host_.features.cgroup_reason = root.error().text();
    }
  }
  CO_TRY_ASSIGN(host_.builder, confine::Builder::open(loop_, settings_.init_path, settings_.run_dir));
  CO_TRY_ASSIGN(host_.homes, Homes::open(settings_.homes, settings_.audit_dir));
  if (host_.features.tier() == Tier::t0)  // what a launcher before us has left
    host_.homes->run(loop_, {"sweep", host_.boot_tag()}, [](const Result<json::Value>& done) {
      if (!done) sys::say("caisson-launcher: homes of earlier workspaces are left: " + done.error().text());
    });

  CO_TRY(workspaces_.set_up_main(loaded.policies.begin()->second->limits));
  json::Value boot{{"version", CAISSON_VERSION},
                   {"boot", host_.boot_id},
                   {"previous", {{"count", before.count}, {"head", before.head}}},
                   {"attestation_key", host_.key->jwk()},
                   {"features", confine::features_json(host_.features)},
                   {"why_not_higher", confine::why_not_higher(host_.features)},
                   {"preset", settings_.preset},
                   {"policies_digest", digest_of_all(loaded)},
                   {"policies", digests(loaded)}};
  CO_TRY(host_.log->append(audit::Event::boot, boot));
  start_auditor();
  Workspace& main = workspaces_.main();
  CO_TRY_ASSIGN(main.place, co_await workspaces_.make_place(main.place.outer_uid, main.place.outer_gid, 0));
  const Problems problems = co_await domains_.put_in_force(loaded);
  if (!problems.empty()) co_return fail(Code::invalid_argument, problems.front().text());
  co_return Status();
}

void Operations::start_auditor() {
  host_.egress = std::make_unique<Egress>(loop_, host_.features, settings_, [this](auto event, json::Value fields) {
    const auto id = json::get_string(fields, "session");
    if (id && sessions_.find(id->value_or("")) != nullptr) sessions_.on_denial(**id, event, fields, false);
    record(event, std::move(fields));
  });
  host_.denials = std::make_unique<Denials>(loop_, settings_.auditor_uid, host_.features.change_uid.ok(),
                                            [this](const std::string& id, audit::Event event, json::Value fields, bool closed) {
                                              if (!id.empty()) return sessions_.on_denial(id, event, std::move(fields), closed);
                                              record(event, std::move(fields));
                                              // Those built ahead have lost their listener: nobody shall be given one.
                                              if (closed) sessions_.end_ready("auditor_died");
                                            });
  confine::Tried& notify = host_.features.notify;
  if (!notify.ok()) return;
  // Without it filters answer by themselves, and probe, plan and reports say why; a policy that requires denial_audit refuses.
  if (const Status done = host_.denials->start(); !done) {
    host_.denials.reset();
    notify = {done.error().sys != 0 ? done.error().sys : EIO, done.error().what};
    sys::say("caisson-launcher: refused system calls are not recorded: " + done.error().text());
  }
}

void Operations::begin(Task<Status> task) {
  (void)waiting_tasks();
  if (!task.done()) tasks_.push_back(std::move(task));
}

// They end in their own functions, and go from here.
std::size_t Operations::waiting_tasks() {
  std::erase_if(tasks_, [](const auto& task) { return task.done(); });
  return tasks_.size();
}

void Operations::reload(const std::string& by, std::function<void(const Problems&)> done) {
  begin(reload_and_tell(by, std::move(done)));
}

Task<Status> Operations::reload_and_tell(std::string by, std::function<void(const Problems&)> done) {
  const Problems problems = co_await load_again(std::move(by));
  done(problems);
  co_return Status();
}

Task<Operations::Problems> Operations::load_again(std::string by) {
  Problems problems = co_await domains_.reload(std::move(by));
  if (!problems.empty()) co_return problems;
  workspaces_.forget_domains();
  sessions_.end_ready("policy_reload");
  clients_.tell_all({{"event", "policy_reload"}});
  sessions_.refill_all();
  co_return problems;
}

std::uint64_t Operations::serve(Fd socket, Role role, Clients::Closed closed) {
  if (role == Role::agent) sessions_.agent_comes();
  return clients_.serve(std::move(socket), role, std::move(closed));
}

// In the launcher's log, and in that of the session that was meant.
void Operations::on_refused(const ipc::Connection& c, const json::Value& body, const Error& error) {
  const json::Value refused{{"op", body.value("op", "")}, {"what", error.text().substr(0, Refusals::kMaxText)}};
  if (!clients_.record_refused(c.number(), refused)) return;
  if (const auto entry = find(c, body); entry && (*entry)->log)
    (void)(*entry)->log->append(audit::Event::request_refused, refused);
}

Result<Entry*> Operations::find(const ipc::Connection& connection, const json::Value& body) const {
  TRY_ASSIGN(const std::string id, need_string(body, "session"));
  return sessions_.find_for(connection.number(), id);
}

void Operations::on_request(ipc::Connection& c, ipc::Connection::Request request) {
  using ipc::Op;
  static constexpr std::pair<Op, Answer Operations::*> kAnswers[] = {
      {Op::hello, &Operations::answer_hello},
      {Op::session_create, &Operations::answer_create},
      {Op::session_exec, &Operations::answer_exec},
      {Op::exec_signal, &Operations::answer_signal},
      {Op::session_note, &Operations::answer_note},
      {Op::session_adopt, &Operations::answer_adopt},
      {Op::exec_adopt, &Operations::answer_exec_adopt},
      {Op::exec_release, &Operations::answer_exec_release},
      {Op::session_stat, &Operations::answer_stat},
      {Op::session_report, &Operations::answer_report},
      {Op::attest, &Operations::answer_attest},
      {Op::audit_list, &Operations::answer_audit_list},
      {Op::audit_open, &Operations::answer_audit_open},
      {Op::session_list, &Operations::answer_list},
      {Op::session_destroy, &Operations::answer_destroy},
      {Op::workspace_create, &Operations::answer_workspace_create},
      {Op::workspace_list, &Operations::answer_workspace_list},
      {Op::workspace_destroy, &Operations::answer_workspace_destroy},
      {Op::workspace_pause, &Operations::answer_workspace_pace},
      {Op::workspace_resume, &Operations::answer_workspace_pace},
      {Op::workspace_connect, &Operations::answer_workspace_connect},
      {Op::policy, &Operations::answer_policy},
      {Op::policy_reload, &Operations::answer_reload},
      {Op::agent_restart, &Operations::answer_agent_restart},
  };
  static_assert(std::ranges::equal(kAnswers, ipc::kOps, {}, &std::pair<Op, Answer Operations::*>::first,
                                   &ipc::OpRow::op));  // so an op is an index of both
  const auto op = static_cast<std::size_t>(request.op);
  const Status fit = fits(request.body, ipc::kOps[op], clients_.role(c.number()));
  answered(c, request, fit ? (this->*kAnswers[op].second)(c, request) : std::unexpected(fit.error()));
}

void Operations::answered(ipc::Connection& c, const ipc::Connection::Request& request, Result<json::Value> done) {
  if (!done) {
    on_refused(c, request.body, done.error());
    c.reply_error(request.id, done.error(), "request");
  } else if (!done->is_null()) {
    c.reply(request.id, std::move(*done));
  }
}

Task<Status> Operations::answer_when(std::uint64_t number, ipc::Connection::Request request, Task<Result<json::Value>> done) {
  auto answer = co_await std::move(done);
  if (ipc::Connection* c = clients_.find(number)) answered(*c, request, std::move(answer));
  co_return Status();
}

}  // namespace caisson::session
