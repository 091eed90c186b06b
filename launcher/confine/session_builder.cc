#include "launcher/confine/session_builder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "launcher/base/auditor_protocol.h"
#include "launcher/base/scm.h"
#include "launcher/base/sys.h"
#include "launcher/confine/fork_refusal.h"
#include "launcher/confine/landlock.h"
#include "launcher/confine/query.h"
#include "launcher/confine/raw.h"
#include "launcher/confine/start_child.h"
#include "launcher/confine/user_ns.h"
#include "launcher/policy/text_checks.h"

namespace caisson::confine {
namespace {

constexpr std::int64_t kBuildDeadlineUs = 10'000'000;
constexpr int kSystemDeadlineMs = 30'000;

// The next record of the pipe.
Task<Result<StepRecord>> next_record(Loop& loop, int status, std::int64_t deadline_us) {
  const bool ready = co_await Readable(loop, status, deadline_us);
  if (!ready) co_return fail(Code::timeout, "a builder child did not answer in time");
  StepRecord record;
  const ssize_t n = ::read(status, &record, sizeof record);
  if (n == 0) co_return fail(Code::internal, "a builder child ended without a word");
  if (n != static_cast<ssize_t>(sizeof record)) co_return fail(Code::internal, "short step record");
  co_return record;
}

Result<std::vector<Fd>> receive_fds(int socket) {
  char byte;
  const scm::Received came = scm::receive(socket, &byte, 1, MSG_DONTWAIT);
  if (came.size != 1) return sys_error("receive descriptors");
  std::vector<Fd> fds(came.fds, came.fds + came.count);
  if (fds.empty()) return fail(Code::internal, "no descriptors handed over");
  return fds;
}

struct Built {
  std::vector<Fd> fds;
  std::vector<StepRecord> steps;
};

// Of a failed step: the path in a session, where it lies in what sessions may write to, or comes from a place that others than
// root may change; "" where it does not, or hides something below.
std::string culprit_of(const Plan& plan, const StepRecord& record) {
  std::string path;
  if (record.step == Step::hide && record.entry < plan.hide.size() && plan.closed.contains(plan.hide[record.entry])) {
    path = plan.hide[record.entry].substr(0, plan.hide[record.entry].rfind('/'));
  } else if ((record.step == Step::sources || record.step == Step::binds) && record.entry < plan.binds.size()) {
    const Bind& bind = plan.binds[record.entry];
    if (bind.device || (bind.staged && !bind.held) || bind.target == plan.policy->home_path) return "";
    if (record.step == Step::sources) return others_may_change(bind.source) ? bind.target : "";
    path = bind.target;
  }
  const Bind* around = path.empty() ? nullptr : governing(plan, path.substr(0, path.rfind('/')));
  const bool hides = std::ranges::any_of(
      plan.hide, [&](const std::string& h) { return h != path && policy::inside(h, path) && !plan.closed.contains(h); });
  return around != nullptr && !around->read_only && !hides ? path : "";
}

// Runs a builder child to its end and collects what it hands over.
Task<Result<Built>> run_builder(Loop& loop, ChildMain main, ChildArgs args, uid_t uid, gid_t gid, std::string* culprit) {
  CO_TRY_ASSIGN(auto status, sys::pipe());
  CO_TRY_ASSIGN(auto go, sys::pipe());
  CO_TRY_ASSIGN(auto handover, sys::seqpacket_pair());
  args.status = status.second.get();
  args.go = go.first.get();
  args.go_write = go.second.get();
  args.handover = handover.second.get();
  int raw_pidfd = -1;
  const pid_t pid = raw::fork_into(&raw_pidfd, -1);
  if (pid < 0) co_return sys_error("fork builder");
  if (pid == 0) main(args);
  const Child child(pid, Fd(raw_pidfd), true);
  loop.expect(pid);
  status.second.reset();
  go.first.reset();
  handover.second.reset();
  Built built;
  const std::int64_t deadline = sys::monotonic_us() + kBuildDeadlineUs;
  for (;;) {
    CO_TRY_ASSIGN(const StepRecord record, co_await next_record(loop, status.first.get(), deadline));
    if (record.error != 0 && culprit != nullptr) *culprit = culprit_of(*args.plan, record);
    if (record.error != 0) co_return std::unexpected(step_error(*args.plan, record));
    if (record.step == Step::user_ns && record.value == -1) CO_TRY(answer_maps(child.pid(), uid, gid, go.second));
    built.steps.push_back(record);
    if (record.step == Step::done) break;
  }
  CO_TRY_ASSIGN(built.fds, receive_fds(handover.first.get()));
  co_return built;
}

}  // namespace

Status answer_maps(pid_t pid, uid_t uid, gid_t gid, const Fd& go) {
  TRY(write_id_maps(pid, uid, gid));
  if (::write(go.get(), "y", 1) != 1) return sys_error("write to builder");
  return {};
}

Result<Started> fork_session(ChildMain main, ChildArgs args, int cgroup_fd, unsigned long namespaces, Fd* go_write) {
  TRY_ASSIGN(auto status, sys::pipe());
  TRY_ASSIGN(auto socket, sys::seqpacket_pair());
  TRY_ASSIGN(auto go, sys::pipe());
  args.status = status.second.get();
  args.go = go.first.get();
  args.go_write = go.second.get();
  args.init_socket = socket.second.get();
  int pidfd = -1;
  const pid_t pid = raw::fork_into(&pidfd, cgroup_fd, namespaces);
  if (pid < 0) return sys_error((namespaces != 0 ? "clone into new namespaces" : "fork session") + fork_refusal(errno));
  if (pid == 0) main(args);
  Started started{std::move(status.first), Fd(pidfd), pid, std::move(socket.first)};
  if (go_write != nullptr) *go_write = std::move(go.second);
  return started;
}

Error step_error(const Plan& plan, const StepRecord& record) {
  const auto index = static_cast<std::size_t>(record.step);
  if (index >= static_cast<std::size_t>(kStepCount)) return {Code::internal, "unknown step"};
  std::string what = kSteps[index].name;
  const std::size_t entry = record.entry;
  if ((record.step == Step::sources || record.step == Step::binds) && entry < plan.binds.size())
    what += " " + quote(plan.binds[entry].source);
  if (record.step == Step::hide && entry < plan.hide.size()) what += " " + quote(plan.hide[entry]);
  if (record.step == Step::root && entry < plan.directories.size()) what += " " + quote(plan.directories[entry]);
  if (record.step == Step::files && entry < plan.files.size()) what += " " + quote(plan.files[entry].first);
  if (record.step == Step::files && entry != kNoEntry && entry >= plan.files.size() &&
      entry - plan.files.size() < plan.links.size())
    what += " " + quote(plan.links[entry - plan.files.size()].first);
  if (record.step == Step::landlock_rules && entry < plan.landlock.size()) what += " " + quote(plan.landlock[entry].path);
  if (record.error == ESTALE) what += " (the path was replaced while the session was being built)";
  if (record.step == Step::pid || record.step == Step::limits) what += fork_refusal(record.error);
  return sys_error(std::move(what), record.error).error();
}

std::set<Mechanism> enforced_mechanisms(const Plan& plan) {
  std::set<Mechanism> enforced;
  for (int m = 0; m < kMechanismCount; ++m)
    if (plan.mechanisms[m].state == MechanismState::enforced) enforced.insert(static_cast<Mechanism>(m));
  return enforced;
}

Result<Builder> Builder::open(const std::string& init_path, const std::string& run_dir) {
  Builder b;
  TRY_ASSIGN(b.init_exe, sys::open(init_path, O_PATH));
  TRY_ASSIGN(b.null, sys::open("/dev/null", O_RDWR));
  b.stage_dir = run_dir + "/stage";
  b.system_dir = run_dir + "/system";
  b.home_dir = run_dir + "/home";
  b.root_dir = run_dir + "/root";
  for (const std::string& dir : {b.stage_dir, b.system_dir, b.home_dir, b.root_dir})
    if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir " + quote(dir));
  return b;
}

Task<Result<Workspace>> Builder::make_workspace(Loop& loop, const Plan& plan, uid_t outer_uid, gid_t outer_gid) const {
  Workspace workspace{outer_uid, outer_gid, stage_dir, {}, {}, {}, {}, {}};
  if (!plan.user_ns) co_return workspace;
  const ChildArgs args{.plan = &plan, .stage_dir = stage_dir.c_str(), .home_dir = home_dir.c_str()};
  auto built = co_await run_builder(loop, workspace_child, args, outer_uid, outer_gid, nullptr);
  if (!built) co_return std::unexpected(std::move(built).error().wrap("make workspace"));
  if (built->fds.size() != (plan.home_options.empty() ? 3U : 4U))
    co_return fail(Code::internal, "workspace handed over the wrong number of descriptors");
  workspace.user_ns = std::move(built->fds[0]);
  workspace.net_ns = std::move(built->fds[1]);
  workspace.mount_ns = std::move(built->fds[2]);
  if (!plan.home_options.empty()) workspace.home = std::move(built->fds[3]);
  co_return workspace;
}

// Copying is no work for a child of ours that may not allocate: a program does it, which enters the namespaces by itself. It
// answers with one line, "" where all went well.
Task<Status> Builder::make_system(Loop& loop, const Plan& plan, const Workspace& workspace) const {
  if (::mkdir(plan.system.directory.c_str(), 0700) != 0 && errno != EEXIST) co_return sys_error("mkdir " + plan.system.directory);
  Question question{.program = "caisson-system",
                    .arguments = {},
                    .request = plan.system.request,
                    .fd3 = workspace.mount_ns.get(),
                    .most = 4096,
                    .deadline_ms = kSystemDeadlineMs};
  auto text = co_await ask(loop, std::move(question));
  if (!text) co_return std::unexpected(std::move(text).error().wrap("caisson-system"));
  if (*text != "\n") co_return fail(Code::io, text->substr(0, text->size() - 1));
  co_return Status();
}

Task<Result<Template>> Builder::make_template(Loop& loop, std::shared_ptr<const Plan> plan, const Workspace& workspace,
                                              std::string* culprit) const {
  Template out;
  CO_TRY_ASSIGN(out.filter, co_await ask_filter(loop, *plan));
  std::string& refusals = out.filter.refusals;
  if (plan->observe) refusals += view_text(*plan);
  if (refusals.size() > auditor::kMaxMessage - sizeof(auditor::Head))
    co_return fail(Code::limit,
                   "policy '" + plan->policy->domain + "' refuses, or with audit.paths grants, too much to be recorded");
  out.plan = plan;
  if (!plan->mount_ns) {
    if (plan->landlock_fs != 0) {
      unsigned entry = 0;
      out.landlock = Fd(landlock_make(*plan, init_exe.get(), &entry));
      if (!out.landlock)
        co_return std::unexpected(step_error(*plan, {Step::landlock_rules, static_cast<std::uint16_t>(entry), errno, 0, 0}));
    }
    co_return out;
  }
  if (!plan->system.empty() && !workspace.systems.contains(plan->system.directory)) {
    if (auto made = co_await make_system(loop, *plan, workspace); !made)
      co_return std::unexpected(std::move(made).error().wrap("prepare the packages of policy '" + plan->policy->domain + "'"));
    workspace.systems.insert(plan->system.directory);
  }
  const ChildArgs args{.plan = plan.get(),
                       .stage_dir = root_dir.c_str(),
                       .user_ns = workspace.user_ns.get(),
                       .mount_ns = workspace.mount_ns.get(),
                       .init_exe = init_exe.get()};
  auto built = co_await run_builder(loop, template_child, args, 0, 0, culprit);
  if (!built) co_return std::unexpected(std::move(built).error().wrap("prepare policy '" + plan->policy->domain + "'"));
  const std::size_t wanted = plan->landlock_fs != 0 ? 2 : 1;
  if (built->fds.size() != wanted) co_return fail(Code::internal, "template handed over the wrong number of descriptors");
  out.mount_ns = std::move(built->fds[0]);
  if (wanted == 2) out.landlock = std::move(built->fds[1]);
  out.steps = std::move(built->steps);
  co_return out;
}

Result<Started> Builder::start(const Template& prepared, const Workspace& workspace, uid_t uid, int cgroup_fd,
                               const Protection* protection) const {
  const ChildArgs args{.plan = prepared.plan.get(),
                       .seccomp = &prepared.filter.program,
                       .user_ns = workspace.user_ns.get(),
                       .net_ns = prepared.plan->net_ns ? workspace.net_ns.get() : -1,
                       .mount_ns = prepared.mount_ns.get(),
                       .landlock = prepared.landlock.get(),
                       .init_exe = init_exe.get(),
                       .null = null.get(),
                       .protection = protection,
                       .uid = uid,
                       .gid = workspace.outer_gid};
  TRY_ASSIGN(Started started, fork_session(session_child, args, cgroup_fd));
  TRY(sys::set_nonblocking(started.status.get(), true));
  return started;
}

}  // namespace caisson::confine
