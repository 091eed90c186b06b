#include "launcher/pid1/execute/session_builder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/build_rows.h"
#include "launcher/common/confine/fork_refusal.h"
#include "launcher/common/confine/helper.h"
#include "launcher/common/confine/init_link.h"
#include "launcher/common/confine/query.h"
#include "launcher/common/confine/step_error.h"
#include "launcher/common/confine/user_ns.h"
#include "launcher/common/kernel/faults.h"
#include "launcher/common/policy/in_force.h"
#include "launcher/common/policy/text_checks.h"
#include "launcher/common/wire/auditor_protocol.h"

namespace caisson::confine {
namespace {

constexpr std::int64_t kBuildDeadlineUs = 10'000'000;
constexpr int kSystemDeadlineMs = 300'000;  // with a cold cache each of some 20,000 directories of /usr is a read from disk

// carried: in the order of builder::Carried; those that are -1 do not come along.
Status send(const Fd& control, builder::Request request, const Carried& carried) {
  int fds[scm::kMaxFds];
  std::size_t count = 0;
  for (const auto& [what, fd] : carried) {
    if (fd < 0) continue;
    request.carried |= 1U << static_cast<std::uint32_t>(what);
    fds[count++] = fd;
  }
  if (scm::send(control.get(), &request, sizeof request, fds, count, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof request))
    return sys_error("send to caisson-builder");
  return {};
}

std::uint64_t next_number() {
  static std::uint64_t last = 0;
  return ++last;
}

Result<Fd> plan_bytes(const Plan& plan, const Program& filter) {
  BuildRows rows(plan, filter);
  builder::Encoder encoder;
  builder::members(encoder, rows.plan);
  Fd bytes(::memfd_create("plan", MFD_CLOEXEC));
  TRY(sys::write_all(bytes.get(), encoder.bytes));
  return bytes;
}

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

struct Built {
  pid_t pid = 0;
  std::vector<Fd> fds;
  std::vector<StepRecord> steps;
};

// Hears a child of a builder to its end and collects what it hands over. It is killed where that is left early.
class Hearing {
 public:
  Hearing(Loop& loop, Fd answer) : loop_(loop), link_(std::move(answer)) {
    loop_.before_reap(this, [this] { return !heard_; });
  }
  Hearing(const Hearing&) = delete;
  Hearing& operator=(const Hearing&) = delete;
  ~Hearing() {
    loop_.forget_before_reap(this);
    if (child_) (void)sys::pidfd_send_signal(child_.get(), SIGKILL);
  }

  // maps: the ids of a workspace, whose builder waits for them.
  Task<Result<Built>> run(const Plan& plan, std::pair<uid_t, gid_t> maps, std::string* culprit) {
    Built built;
    const std::int64_t deadline = sys::monotonic_us() + kBuildDeadlineUs;
    for (;;) {
      const bool ready = co_await Readable(loop_, link_.fd(), deadline);
      if (!ready) co_return fail(Code::timeout, "a builder child did not answer in time");
      auto received = link_.receive();
      if (!received) co_return fail(Code::internal, "a builder child ended without a word");
      auto& event = *received;
      if (!event) continue;
      if (event->reply.type == init::Type::child) {
        child_ = std::move(event->fd);
        heard_ = true;
        loop_.expect(built.pid = event->reply.pid);
      }
      for (const StepRecord& record : event->steps) {
        if (record.error != 0 && culprit != nullptr) *culprit = culprit_of(plan, record);
        if (record.error != 0) co_return std::unexpected(step_error(plan, record));
        if (record.step == Step::user_ns && record.value == -1) {
          CO_TRY(write_id_maps(built.pid, maps.first, maps.second));
          CO_TRY(link_.maps_written());
        }
        built.steps.push_back(record);
      }
      if (built.steps.empty() || built.steps.back().step != Step::done) continue;
      built.fds = std::move(event->made);
      child_.reset();
      co_return built;
    }
  }

 private:
  Loop& loop_;
  InitLink link_;
  Fd child_;
  bool heard_ = false;
};

}  // namespace

Result<Builder> Builder::open(Loop& loop, const std::string& init_path, const std::string& run_dir) {
  Builder b;
  b.loop_ = &loop;
  b.init_path_ = init_path;
  b.stage_dir = run_dir + "/stage";
  b.system_dir = run_dir + "/system";
  b.home_dir = run_dir + "/home";
  b.root_dir_ = run_dir + "/root";
  for (const std::string& dir : {b.stage_dir, b.system_dir, b.home_dir, b.root_dir_})
    if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir " + quote(dir));
  TRY(b.start_root());
  return b;
}

Status Builder::start_root() const {
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  Helper helper{.file = "caisson-builder", .argv = {init_path_, stage_dir, home_dir, root_dir_}, .fd3 = pair.second.get()};
  faults::pass(helper.env);
  TRY_ASSIGN(const Running running, start_helper(std::move(helper)));
  loop_->expect(running.pid);
  root_pid_ = running.pid;
  root_ = std::move(pair.first);
  return {};
}

// In the workspace's user namespace, where it has one already.
Status Builder::start_builder(const Workspace& workspace) const {
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  Carried carried{{builder::Carried::control, pair.second.get()}};
  if (workspace.user_ns) carried.emplace_back(builder::Carried::user_ns, workspace.user_ns.get());
  if (!send(root_, {.op = builder::Op::fork}, carried)) {  // it may have been killed
    TRY(start_root());
    TRY(send(root_, {.op = builder::Op::fork}, carried));
  }
  workspace.control = std::move(pair.first);
  return {};
}

Status Builder::order(const Workspace& workspace, builder::Request request, const Carried& carried) const {
  // A builder that has ended is replaced, one that has too much to do is not.
  if (const Status sent = workspace.control ? send(workspace.control, request, carried) : fail(Code::internal, "");
      sent || sent.error().sys == EAGAIN)
    return sent;
  TRY(start_builder(workspace));
  return send(workspace.control, request, carried);
}

Task<Result<Workspace>> Builder::make_workspace(Loop& loop, const Plan& plan, uid_t outer_uid, gid_t outer_gid) const {
  Workspace workspace;
  workspace.outer_uid = outer_uid;
  workspace.outer_gid = outer_gid;
  workspace.stage = stage_dir;
  workspace.builder = root_pid_;
  if (!plan.user_ns) co_return workspace;
  CO_TRY_ASSIGN(auto answer, sys::seqpacket_pair());
  CO_TRY_ASSIGN(const Fd bytes, plan_bytes(plan, {}));
  CO_TRY(order(workspace, {.op = builder::Op::workspace, .plan_number = next_number()},
               {{builder::Carried::answer, answer.second.get()}, {builder::Carried::plan, bytes.get()}}));
  answer.second.reset();
  Hearing hearing(loop, std::move(answer.first));
  auto built = co_await hearing.run(plan, {outer_uid, outer_gid}, nullptr);
  if (!built) co_return std::unexpected(std::move(built).error().wrap("make workspace"));
  if (built->fds.size() != (plan.home_options.empty() ? 3U : 4U))
    co_return fail(Code::internal, "workspace handed over the wrong number of descriptors");
  workspace.builder = built->pid;
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
  CO_TRY_ASSIGN(Filter filter, co_await ask_filter(loop, *plan));
  if (plan->observe) filter.refusals += plan->view;
  if (filter.refusals.size() > auditor::kMaxMessage - sizeof(auditor::Head))
    co_return fail(Code::limit,
                   "policy '" + plan->policy->domain + "' refuses, or with audit.paths grants, too much to be recorded");
  out.refusals = std::move(filter.refusals);
  out.plan = plan;
  out.number = next_number();
  CO_TRY_ASSIGN(out.bytes, plan_bytes(*plan, filter.program));
  const std::size_t wanted = (plan->mount_ns ? 1U : 0U) + (plan->landlock_fs != 0 ? 1U : 0U);
  if (wanted == 0) co_return out;
  if (!plan->system.empty() && !workspace.systems.contains(plan->system.directory)) {
    if (auto made = co_await make_system(loop, *plan, workspace); !made)
      co_return std::unexpected(std::move(made).error().wrap("prepare the packages of policy '" + plan->policy->domain + "'"));
    workspace.systems.insert(plan->system.directory);
  }
  CO_TRY_ASSIGN(auto answer, sys::seqpacket_pair());
  CO_TRY(order(workspace, {.op = builder::Op::tree, .plan_number = out.number},
               {{builder::Carried::answer, answer.second.get()},
                {builder::Carried::plan, out.bytes.get()},
                {builder::Carried::mount_ns, workspace.mount_ns.get()}}));
  answer.second.reset();
  Hearing hearing(loop, std::move(answer.first));
  auto built = co_await hearing.run(*plan, {}, culprit);
  if (!built) co_return std::unexpected(std::move(built).error().wrap("prepare policy '" + plan->policy->domain + "'"));
  if (built->fds.size() != wanted) co_return fail(Code::internal, "template handed over the wrong number of descriptors");
  if (plan->landlock_fs != 0) out.landlock = std::move(built->fds.back());
  if (plan->mount_ns) out.mount_ns = std::move(built->fds.front()), out.steps = std::move(built->steps);
  co_return out;
}

Result<Fd> Builder::start(const Template& prepared, const Workspace& workspace, uid_t uid, const std::optional<Cgroup>& cgroup,
                          const Protection* protection, const std::string& session) const {
  TRY_ASSIGN(auto socket, sys::seqpacket_pair());
  const Fd& net_ns = policy::goes_out(*prepared.plan->policy) && workspace.out_ns ? workspace.out_ns : workspace.net_ns;
  builder::Request request{.op = builder::Op::session, .plan_number = prepared.number, .uid = uid, .gid = workspace.outer_gid};
  (session + " " + prepared.plan->policy->domain).copy(request.whose, sizeof request.whose - 1);
  TRY(order(workspace, request,
            {{builder::Carried::answer, socket.second.get()},
             {builder::Carried::plan, prepared.bytes.get()},
             {builder::Carried::net_ns, prepared.plan->net_ns ? net_ns.get() : -1},
             {builder::Carried::mount_ns, prepared.mount_ns.get()},
             {builder::Carried::landlock, prepared.landlock.get()},
             {builder::Carried::cgroup, cgroup ? cgroup->fd() : -1},
             {builder::Carried::protect, protection != nullptr ? protection->program.get() : -1},
             {builder::Carried::notes, protection != nullptr ? protection->notes.get() : -1},
             {builder::Carried::line, prepared.plan->connected ? workspace.out_line.get() : -1}}));
  return std::move(socket.first);
}

Task<Result<std::vector<Fd>>> Builder::connect(Loop& loop, const Workspace& workspace, std::uint32_t port) const {
  if (!workspace.net_ns) co_return fail(Code::unavailable, "the workspace has no network of its own here");
  std::vector<Fd> made;
  int error = 0;
  for (const int net_ns : {workspace.net_ns.get(), workspace.out_ns.get()}) {
    if (net_ns < 0) continue;
    CO_TRY_ASSIGN(auto answer, sys::seqpacket_pair());
    CO_TRY(order(workspace, {.op = builder::Op::connect, .port = port},
                 {{builder::Carried::answer, answer.second.get()}, {builder::Carried::net_ns, net_ns}}));
    answer.second.reset();
    Hearing hearing(loop, std::move(answer.first));
    CO_TRY_ASSIGN(Built built, co_await hearing.run(Plan(), {}, nullptr));
    error = built.steps.back().value;
    if ((error == 0) != (built.fds.size() == 1)) co_return fail(Code::internal, "the builder gave no socket");
    std::ranges::move(built.fds, std::back_inserter(made));
    if (error != ECONNREFUSED && port < builder::kListens) break;
  }
  if (error != 0) co_return sys_error("connect to port " + std::to_string(port % builder::kListens), error);
  co_return std::move(made);
}

}  // namespace caisson::confine
