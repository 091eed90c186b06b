#include "launcher/session/canary_session.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/base/sys.h"
#include "launcher/session/init_link.h"
#include "launcher/session/process_tree.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kDeadlineUs = 10'000'000;

// Both processes are our children and nobody else waits for them.
class Canary {
 public:
  Canary(confine::Started started, const confine::Plan& plan, uid_t uid)
      : started_(std::move(started)), link_(std::move(started_.socket)), plan_(plan), uid_(uid) {}
  ~Canary() {
    (void)sys::pidfd_send_signal(started_.child.get(), SIGKILL);
    if (pid_ != 0 && !plan_.pid_ns) kill_tree(pid_, uid_);
    if (pid_ != 0) (void)::kill(pid_, SIGKILL);  // not reaped yet: the pid is still its
    for (const pid_t pid : {started_.child_pid, pid_ == started_.child_pid ? 0 : pid_})
      while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
  }
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  Result<confine::ProbeResults> run(const init::Targets& targets, const Listen& listen) {
    TRY(link_.probe(targets));  // waits in the socket until init is there
    TRY(read_steps());
    confine::ProbeResults results;
    TRY_ASSIGN(InitEvent ready, next());
    if (ready.reply.type == init::Type::listener) {
      TRY(listen(ready.fd));
      TRY(read_steps());          // the exec, which may have failed
      TRY_ASSIGN(ready, next());  // and our copy is gone
    } else if (plan_.enforces(Mechanism::denial_audit) && !confine::faults::blind()) {
      return fail(Code::protocol, "the filter's listener was not handed over (denial_listener)");
    }
    if (ready.reply.type != init::Type::ready) return fail(Code::protocol, "caisson-init did not begin with `ready`");
    for (std::uint32_t i = 0; i < results.size(); ++i) {
      TRY_ASSIGN(const InitEvent event, next());
      const init::Reply& r = event.reply;
      if (r.type != init::Type::probed || r.exec_id != i) return fail(Code::protocol, "caisson-init answered another probe");
      results[i] = r.signaled != 0 ? confine::ProbeResult{0, 0, r.status} : confine::ProbeResult{r.error, r.status, 0};
    }
    return results;
  }

 private:
  Status wait(int fd) const {
    for (;;) {
      const std::int64_t left = deadline_ - sys::monotonic_us();
      if (left <= 0) return fail(Code::timeout, "the canary session did not answer in time");
      pollfd p{fd, POLLIN, 0};
      const int ready = ::poll(&p, 1, static_cast<int>(left / 1000 + 1));
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return sys_error("poll");
    }
  }
  Status read_steps() {
    for (;;) {
      TRY(wait(started_.status.get()));
      confine::StepRecord record;
      const ssize_t n = ::read(started_.status.get(), &record, sizeof record);
      if (n == 0 && pid_ != 0) return {};
      if (n != static_cast<ssize_t>(sizeof record)) return fail(Code::internal, "the canary session ended early");
      if (record.error != 0) return std::unexpected(confine::step_error(plan_, record));
      if (record.step == confine::Step::pid) pid_ = record.value;
      // What follows is the exec, which waits for the listener's answer where paths are observed.
      if (record.step == confine::Step::listener) return {};
    }
  }
  Result<InitEvent> next() {
    for (;;) {
      TRY(wait(link_.fd()));
      TRY_ASSIGN(auto event, link_.receive());
      if (event) return std::move(*event);
    }
  }

  confine::Started started_;
  InitLink link_;
  const confine::Plan& plan_;
  const uid_t uid_;  // confine::Workspace::sole
  pid_t pid_ = 0;
  const std::int64_t deadline_ = sys::monotonic_us() + kDeadlineUs;
};

}  // namespace

Result<confine::ProbeResults> run_canary(const confine::Builder& builder, const confine::Template& prepared,
                                         const confine::Workspace& workspace, uid_t uid, const init::Targets& targets,
                                         const Listen& listen) {
  TRY_ASSIGN(confine::Started started, builder.start(prepared, workspace, uid, -1));
  Canary canary(std::move(started), *prepared.plan, workspace.sole(uid));
  return canary.run(targets, listen);
}

}  // namespace caisson::session
