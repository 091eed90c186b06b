#include "launcher/pid1/session/session.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/fork_refusal.h"
#include "launcher/common/confine/helper.h"
#include "launcher/common/confine/mount_facts.h"
#include "launcher/common/confine/step_error.h"
#include "launcher/common/kernel/faults.h"
#include "launcher/pid1/session/process_tree.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kBuildDeadlineUs = 10'000'000, kLookUs = 10'000'000;
// A session can stop the child that init waits for (SIGSTOP between fork and exec, a lease on the file): init is then deaf, and
// what the launcher asked of it does not happen. What must be true the launcher then does itself, to the whole session.
constexpr std::int64_t kStartDeadlineUs = 10'000'000, kKillDeadlineUs = 2'000'000;

}  // namespace

Result<std::unique_ptr<Session>> Session::start(std::string id, std::shared_ptr<const confine::Template> prepared,
                                                const confine::Builder& builder, const confine::Workspace& workspace, uid_t uid,
                                                std::optional<confine::Cgroup> cgroup, Loop& loop, Events& events) {
  const confine::Template& ready = *prepared;
  std::unique_ptr<Session> session(new Session(std::move(id), std::move(prepared), uid, std::move(cgroup), loop, events));
  session->sole_uid_ = workspace.sole(uid);
  auto protection = confine::Protection::prepare(*ready.plan);
  auto started = protection ? builder.start(ready, workspace, uid, session->cgroup_, &*protection, session->id_)
                            : std::unexpected(std::move(protection).error());
  if (!started) {
    if (session->cgroup_) (void)session->cgroup_->remove();
    return std::unexpected(std::move(started).error());
  }
  session->protection_ = std::move(*protection);
  TRY(session->adopt(std::move(*started)));  // else its child ends with the socket
  return session;
}

Session::~Session() {
  if (link_) loop_.unwatch(link_->fd());
  loop_.cancel(deadline_);
  if (cgroup_) (void)cgroup_->kill(), (void)cgroup_->remove();  // only when it ended before its own end
  for (auto& [id, exec] : execs_) cancel_timers(exec);
  if (pid_ != 0 && !first_gone_) loop_.forget_exit(pid_);
}

Status Session::adopt(Fd socket) {
  link_.emplace(std::move(socket));
  deadline_ = loop_.after(kBuildDeadlineUs, [this] {
    built(fail(Code::timeout, "the session was not built in time"));
    if (pid_ == 0 && !first_gone_) gone();  // a child that the builder makes after all ends with the socket
  });
  return loop_.watch(link_->fd(), EPOLLIN, [this](std::uint32_t) { read_init(); });
}

// The builder's first message: our own child by CLONE_PARENT, and its pidfd, which is good even if the loop has reaped it
// already.
void Session::take_child(const confine::InitEvent& event) {
  pid_ = event.reply.pid;
  loop_.on_exit(pid_, [this](const ChildExit&) { gone(); });
  if (state_ == State::ending) kill_now();  // ended before this process was known
}

void Session::take_steps(const std::vector<confine::StepRecord>& steps) {
  for (const confine::StepRecord& record : steps) {
    steps_.push_back(record);
    if (record.error == 0) continue;
    const Status said = record.step == confine::Step::protect ? protection_.read(1) : Status();
    return built(std::unexpected(said ? confine::step_error(plan(), record) : said.error()));
  }
}

// One message a turn: epoll says when there is another, for less than asking in vain costs each time.
void Session::read_init() {
  if (!link_ || first_gone_) return;
  auto event = link_->receive();
  if (event && !*event) return;
  if (event) return take(std::move(**event));
  loop_.unwatch(link_->fd());
  if (pid_ == 0) return gone();  // the builder ended, or told of a step that failed, before there was a process
  end(event.error().code == Code::protocol ? SessionEnd("init_protocol") : SessionEnd("init_died"));
}

void Session::take(confine::InitEvent event) {
  const init::Reply& reply = event.reply;
  if (reply.type == init::Type::child) {
    if (pid_ != 0 || reply.pid <= 0 || !event.fd) return end("init_protocol");
    pidfd_ = std::move(event.fd);
    return take_child(event);
  }
  if (reply.type == init::Type::steps) return ready_ ? end("init_protocol") : take_steps(event.steps);
  if (reply.type == init::Type::ready) {
    if (ready_ || pid_ == 0) return end("init_protocol");
    ready_ = true;
    return take_ready();
  }
  if (reply.type == init::Type::listener) {
    if (ready_ || std::exchange(listened_, true) || !event.fd || !plan().enforces(Mechanism::denial_audit))
      return end("init_protocol");
    if (Status heard = events_.on_listener(*this, event.fd, prepared_->refusals); !heard)
      built(std::unexpected(std::move(heard).error()));
    return;
  }
  const auto it = execs_.find(reply.exec_id);
  if (it == execs_.end()) return end("init_protocol");
  Exec& exec = it->second;
  switch (reply.type) {
    case init::Type::started:
      if (exec.started || exec.pty != event.fd.valid()) return end("init_protocol");
      exec.started = true;
      loop_.cancel(exec.start_timer);
      if (exec.pty) exec.ends.push_back(std::move(event.fd));
      events_.on_started(*this, exec, reply.pid);
      exec.ends.clear();
      return;
    case init::Type::failed: {
      if (exec.started) return end("init_protocol");
      const std::string step = init::step_name(reply.step);
      const Error error =
          sys_error(step + " " + quote(reply.step == init::Step::chdir ? exec.request.cwd : exec.request.argv.front()) +
                        (reply.step == init::Step::fork ? confine::fork_refusal(reply.error) : ""),
                    reply.error > 0 && reply.error < 4096 ? reply.error : EIO)
              .error();
      cancel_timers(exec);
      events_.on_failed(*this, exec, error, step);
      execs_.erase(it);
      return;
    }
    case init::Type::exited:
      if (!exec.started) return end("init_protocol");
      return take_exited(reply);
    default:
      return end("init_protocol");
  }
}

void Session::take_exited(const init::Reply& reply) {
  auto node = execs_.extract(reply.exec_id);
  Exec& exec = node.mapped();
  cancel_timers(exec);
  // With memory.oom.group the kernel kills init too, but init may have told of this one's end before its own signal came.
  if (exec.reason.empty() && reply.signaled != 0 && reply.status == SIGKILL && cgroup_ && cgroup_->out_of_memory())
    exec.reason = "oom";
  totals_.cpu_us += std::max<std::int64_t>(reply.user_us, 0) + std::max<std::int64_t>(reply.system_us, 0);
  events_.on_exited(*this, exec, reply);
}

// With a connector, which is our child, caisson-init is the one child of that.
Result<confine::Verified> Session::verify() const {
  const auto below = plan().connected ? children_of(pid_) : std::vector{pid_};
  const pid_t pid = below.size() == 1 ? below[0] : 0;  // of which nothing can be read
  TRY_ASSIGN(auto ns, confine::verify_namespaces(plan(), pid, protection_, prepared_->mount_ns.get(), &prepared_->known_mounts));
  TRY_ASSIGN(auto verified, confine::verify_session(plan(), pid, steps_, std::move(ns)));
  if (cgroup_) {
    // Nothing else says so: outside its leaf a session would be limited by nobody.
    if (!cgroup_->holds(pid)) return fail(Code::internal, "verification failed: the session is not in its cgroup");
    verified.facts["cgroup"] = cgroup_->name();
    if (plan().io) verified.facts["io.max"] = cgroup_->io_limits();
  }
  return verified;
}

void Session::take_ready() {
  if (state_ != State::building) return;
  const Status told = plan().protect.empty() ? Status() : protection_.read(1);
  auto verified = told ? verify() : std::unexpected(told.error());
  // It comes before `ready` over the same socket, or not at all.
  if (plan().enforces(Mechanism::denial_audit) && !listened_ && verified)
    verified = fail(Code::internal, "verification failed: nobody has been given the filter's listener (denial_listener)");
  if (!verified && !confine::faults::blind()) return built(std::unexpected(std::move(verified).error()));
  if (verified) verified_ = std::move(*verified);
  built({});
}

void Session::built(Status status) {
  if (state_ != State::building) return;
  loop_.cancel(deadline_);
  deadline_ = 0;
  if (status) {
    state_ = State::idle;
    return events_.on_built(*this, {});
  }
  // Ending before anybody is told: whoever then asks for the end would otherwise be told of the failure again.
  state_ = State::ending;
  end_reason_ = "build_failed";
  events_.on_built(*this, std::move(status));
  kill_now();
}

Result<Exec*> Session::exec(confine::ExecRequest&& request, bool with_stdin, std::int64_t hard_timeout_us) {
  if (state_ != State::running) return fail(Code::not_found, "the session is not running");
  if (execs_.size() >= policy().limits.execs)
    return fail(Code::limit,
                "more than " + std::to_string(policy().limits.execs) + " commands at once (limits.execs of the policy)");
  // T0 shares the home by group, because its sessions have different uids.
  request.umask = plan().user_ns ? policy().umask : policy().umask & ~070U;
  Exec exec;
  exec.label = next_label();
  request.id = next_exec_++;
  exec.pty = request.pty;
  exec.begin_us = sys::monotonic_us();
  std::vector<Fd> theirs;
  int stdio[3] = {-1, -1, -1};
  for (int i = 0; i < 3 && !exec.pty; ++i) {
    if (i == 0 && !with_stdin) continue;
    TRY_ASSIGN(auto pipe, sys::pipe());
    Fd& inside = i == 0 ? pipe.first : pipe.second;
    stdio[i] = inside.get();
    theirs.push_back(std::move(inside));
    exec.ends.push_back(std::move(i == 0 ? pipe.second : pipe.first));
  }
  TRY(link_->exec(request, stdio));
  ++totals_.execs;
  const std::uint32_t id = request.id;
  exec.request = std::move(request);
  if (hard_timeout_us > 0) arm(id, exec, hard_timeout_us);
  await_start(id, exec);
  return &execs_.emplace(id, std::move(exec)).first->second;
}

void Session::await_start(std::uint32_t id, Exec& exec) {
  exec.start_timer = loop_.after(kStartDeadlineUs, [this, id] {
    if (const auto it = execs_.find(id); it != execs_.end() && !it->second.started) end("init_hung");
  });
}

void Session::arm(std::uint32_t id, Exec& exec, std::int64_t us) {
  exec.due_us = sys::monotonic_us() + us;
  exec.timer = loop_.after(us, [this, id] { time_over(id); });
}

void Session::time_over(std::uint32_t id) {
  const auto it = execs_.find(id);
  if (it == execs_.end()) return;
  if (!it->second.reason.empty()) return end("init_hung");
  it->second.reason = "hard_timeout";
  if (!link_->signal(id, SIGKILL, it->second.pty ? init::Scope::posix_session : init::Scope::group)) return end("init_protocol");
  arm(id, it->second, kKillDeadlineUs);
}

void Session::hold(bool still) {
  for (auto& [id, exec] : execs_) {
    if (!exec.started) loop_.cancel(exec.start_timer);
    if (!exec.started && !still) await_start(id, exec);
    if (exec.due_us == 0) continue;
    loop_.cancel(exec.timer);
    if (still) exec.due_us = std::max<std::int64_t>(exec.due_us - sys::monotonic_us(), 1);
    else arm(id, exec, exec.due_us);
  }
}

void Session::go(const Exec& exec) {
  if (!link_->go(exec.request.id)) end("init_hung");
}

Status Session::signal(std::uint32_t exec_id, int signal) {
  const auto it = execs_.find(exec_id);
  if (it == execs_.end()) return fail(Code::not_found, "no such command, or it has ended");
  return link_->signal(exec_id, signal, it->second.pty ? init::Scope::posix_session : init::Scope::group);
}

void Session::end(SessionEnd reason, nlohmann::json hit) {
  if (state_ == State::ending || state_ == State::ended) return;
  const bool was_building = state_ == State::building;
  state_ = State::ending;
  if (end_reason_.empty()) end_reason_ = reason, end_hit_ = std::move(hit);
  if (was_building)
    events_.on_built(*this, fail(Code::internal, "the session ended while it was being built: " + std::string(reason.text)));
  kill_now();
}

void Session::kill_now() {
  if (cgroup_) (void)cgroup_->kill();
  // In a PID namespace the end of its first process is the end of all others, and the kernel reaps them before it.
  if (pid_ == 0) {  // it ends when it is known
  } else if (plan().pid_ns) {
    (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
  } else if (!first_gone_) {
    kill_tree(pid_, sole_uid_);
  }
}

void Session::cancel_timers(Exec& exec) {
  loop_.cancel(exec.timer);
  loop_.cancel(exec.start_timer);
}

// Without a PID namespace a session may kill its own first process, and what is left of it becomes ours. Every child with its
// uid that nobody here expects is such an orphan. Before the end is written down there is none.
void Session::sweep_orphans() {
  static const std::string own_filters =
      sys::status_field(sys::read_file("/proc/self/status", 16384).value_or(""), "Seccomp_filters");
  for (int round = 0; round < 5000; ++round) {
    // Deep trees fall by a whole pass; who forks and ends, and so becomes our child, by the quick looks between.
    const bool pass = round % 10 == 9;
    const ProcessTree tree = pass ? ProcessTree::read() : ProcessTree();
    const std::vector<pid_t> ours = children_of(::getpid());
    bool found = false;
    for (const pid_t pid : ours) {
      if (loop_.expects(pid)) continue;
      // A dead one says whose it was as it is reaped: of sessions that end together there are hundreds.
      siginfo_t dead{};
      if (::waitid(P_PID, static_cast<id_t>(pid), &dead, WEXITED | WNOHANG) == 0 && dead.si_pid == pid) {
        found = found || dead.si_uid == uid_;
        continue;
      }
      // Of another uid: what somebody has left in our container, such as `docker exec`. While a builder's child is to come:
      // without a filter more than ours it is that child, and must not be ended. With one its builder has told of it before.
      const std::string status = sys::read_file("/proc/" + std::to_string(pid) + "/status", 16384).value_or("");
      if (!sys::status_field(status, "Uid").starts_with(std::to_string(uid_) + "\t")) continue;
      const bool to_come = loop_.announce();
      if (loop_.expects(pid) || (to_come && sys::status_field(status, "Seccomp_filters") == own_filters)) continue;
      found = true;
      for (const pid_t below : tree.descendants(pid)) (void)::kill(below, SIGKILL);
      (void)::kill(pid, SIGKILL);  // our own child and not reaped: the pid is still its
      (void)::waitpid(pid, nullptr, WNOHANG);
    }
    if (!found) return;
    if (pass) ::usleep(1000);
  }
}

void Session::gone() {
  first_gone_ = true;
  // Its end may be heard before the step that failed.
  while (state_ == State::building) {
    const auto event = link_->receive();
    if (!event || !*event) break;
    if ((*event)->reply.type == init::Type::steps) take_steps((*event)->steps);
  }
  if (state_ == State::building) {
    // The child ended before it was ready and said nothing of a failed step.
    state_ = State::ending;
    if (end_reason_.empty()) end_reason_ = "build_failed";
    events_.on_built(*this, fail(Code::internal, "the session's child ended before it was ready"));
  } else if (state_ != State::ending) {
    state_ = State::ending;
    if (end_reason_.empty()) end_reason_ = "init_died";
    kill_now();
  }
  if (!plan().pid_ns && pid_ != 0) sweep_orphans();
  if (cgroup_) {
    totals_.cgroup = cgroup_->stats();
    // memory.oom.group takes the whole session at once: init did not die by itself.
    if (totals_.cgroup->oom_kills > 0 && end_reason_ == "init_died") {
      end_reason_ = "oom";
      end_hit_ = {{"allowed", policy().limits.memory_bytes}, {"figure", totals_.cgroup->memory_peak}};
    }
  }
  // What init said of commands before it was killed is still in the socket.
  if (link_) {
    loop_.unwatch(link_->fd());
    for (auto event = link_->receive(); event && *event; event = link_->receive())
      if (execs_.contains((*event)->reply.exec_id)) take(std::move(**event));
    link_.reset();
  }
  init::Reply killed{.signaled = 1, .status = SIGKILL};
  while (!execs_.empty()) {
    killed.exec_id = execs_.begin()->first;
    if (execs_.begin()->second.reason.empty()) execs_.begin()->second.reason = "session_end";
    if (execs_.begin()->second.started) take_exited(killed);
    else {
      auto node = execs_.extract(execs_.begin());
      cancel_timers(node.mapped());
      events_.on_failed(*this, node.mapped(), Error(Code::unavailable, "the session ended"), "session");
    }
  }
  finish_removal(0);
}

void Session::finish_removal(int attempt) {
  // The kernel may need a moment until a cgroup whose last member was reaped counts as empty.
  if (cgroup_ && !cgroup_->remove() && attempt < 1000) {
    loop_.after(1000, [this, attempt] { finish_removal(attempt + 1); });
    return;
  }
  totals_.cgroup_left = cgroup_ && attempt >= 1000;
  cgroup_.reset();
  state_ = State::ended;
  events_.on_ended(*this);
}

Status Session::verify_again() {
  auto verified = verify();
  if (!verified) {
    end_broken("verification_failed", verified.error());
    return std::unexpected(std::move(verified).error());
  }
  verified_ = std::move(*verified);
  return {};
}

bool Session::check_covers() {
  if (state_ != State::idle && state_ != State::running) return false;
  if (!plan().mount_ns || confine::faults::blind()) return true;
  const auto covered = confine::check_covers(plan(), pid_, false, &protection_);
  if (!covered) end_broken("uncovered", covered.error());
  return covered.has_value();
}

// In the mounts that its own were made from, for these are gone.
void Session::look_for_new(std::function<void(nlohmann::json)> done) {
  if (!protection_.told.contains('.') || protection_.told.contains('e')) return done(nullptr);
  auto helper = confine::start_helper(
      {.file = "caisson-protect", .argv = {"ended"}, .in = protection_.notes.get(), .fd3 = prepared_->mount_ns.get()});
  if (!helper) return done({{"unknown", helper.error().text()}});
  pidfd_ = std::move(helper->pidfd);
  deadline_ = loop_.after(kLookUs, [this] { (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL); });
  loop_.on_exit(helper->pid, [this, done = std::move(done)](const ChildExit&) { done(protection_.auto_run()); });
}

// A first process that is being killed can no longer be read: that says nothing of its walls. What was found is on record in any
// case.
void Session::end_broken(SessionEnd reason, const Error& why) {
  end_detail_ = why.text();
  end(sys::exiting(pid_) ? SessionEnd("init_died") : reason);
}

nlohmann::json Session::created() const {
  return {
      {"session", id_}, {"tier", tier_name(plan().tier)}, {"tools", plan().tools}, {"steps_us", confine::timings_json(steps_)}};
}

nlohmann::json Session::report(const confine::ProbeResults* canary) const {
  confine::Verified seen = verified_;
  if (!denials_lost_.empty())
    seen.mechanisms[static_cast<std::size_t>(Mechanism::denial_audit)] = {confine::MechanismState::unavailable, denials_lost_};
  nlohmann::json report = confine::report_json(plan(), seen, prepared_->steps, steps_, canary);
  report["session"] = id_;
  if (!plan().protect.empty()) report["protected"] = protection_.named();
  return report;
}

// A report is some kilobytes, of which sessions of one template differ in a few: those are put into the text that all others
// are taken from. Where anything else may differ, the report is made as it is.
Result<std::string> Session::start_record() const {
  const auto whole = [this] { return audit::Log::prepare({{"report", report()}}); };
  const auto as_planned = [](const confine::MechanismPlan& a, const confine::MechanismPlan& b) {
    return a.state == b.state && a.reason == b.reason;
  };
  if (!denials_lost_.empty() || !plan().protect.empty() ||
      !std::ranges::equal(verified_.mechanisms, plan().mechanisms, as_planned))
    return whole();
  static constexpr const char* kDiffer[] = {"facts", "session", "timings_us"};  // as they follow each other
  std::vector<std::string>& parts = prepared_->report;
  if (parts.empty()) {
    nlohmann::json common = report();
    for (const char* name : kDiffer) common[name] = nullptr;
    TRY_ASSIGN(std::string rest, audit::Log::prepare({{"report", std::move(common)}}));
    for (const char* name : kDiffer) {
      const std::string hole = std::string("\"") + name + "\":null";
      const auto at = rest.find(hole);
      if (at == std::string::npos) return parts.clear(), whole();  // too long for a record, and cut
      parts.push_back(rest.substr(0, at + hole.size() - 4));
      rest.erase(0, at + hole.size());
    }
    parts.push_back(std::move(rest));
  }
  std::string out = parts[0] + json::dump(verified_.facts) + parts[1] + '"' + id_ + '"' + parts[2] +
                    json::dump(confine::timings_json(steps_)) + parts[3];
  return out.size() <= audit::kMaxRecord / 2 ? out : whole();
}

}  // namespace caisson::session
