#include "launcher/session/canary_session.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/base/sys.h"
#include "launcher/session/init_link.h"
#include "launcher/session/process_tree.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kDeadlineUs = 10'000'000, kLookUs = 20'000;
constexpr const char* kSilent = "the canary session did not answer in time";

// Both processes are our children, and the loop reaps them: from then on their descriptors kill nobody.
class Canary {
 public:
  Canary(Loop& loop, confine::Started started, const confine::Plan& plan, uid_t uid)
      : loop_(loop), started_(std::move(started)), link_(std::move(started_.socket)), plan_(plan), uid_(uid) {
    loop_.expect(started_.child_pid);
    loop_.before_reap(this, [this] { take_steps(); });
  }
  ~Canary() {
    loop_.forget_before_reap(this);
    (void)sys::pidfd_send_signal(started_.child.get(), SIGKILL);
    const int first = first_ ? first_.get() : started_.child.get();
    if (pid_ != 0 && !plan_.pid_ns && sys::pidfd_send_signal(first, 0)) kill_tree(pid_, uid_);
    (void)sys::pidfd_send_signal(first, SIGKILL);
  }
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  Task<Result<confine::ProbeResults>> run(const init::Targets& targets, const Listen& listen) {
    CO_TRY(link_.probe(targets));  // waits in the socket until init is there
    CO_TRY(co_await read_steps(false));
    confine::ProbeResults results;
    CO_TRY_ASSIGN(InitEvent ready, co_await next());
    if (ready.reply.type == init::Type::listener) {
      CO_TRY(listen(ready.fd));
      CO_TRY(co_await read_steps(true));      // the exec, which may have failed
      CO_TRY_ASSIGN(ready, co_await next());  // and our copy is gone
    } else if (plan_.enforces(Mechanism::denial_audit) && !confine::faults::blind()) {
      co_return fail(Code::protocol, "the filter's listener was not handed over (denial_listener)");
    }
    if (ready.reply.type != init::Type::ready) co_return fail(Code::protocol, "caisson-init did not begin with `ready`");
    for (std::uint32_t i = 0; i < results.size(); ++i) {
      CO_TRY_ASSIGN(const InitEvent event, co_await next());
      const init::Reply& r = event.reply;
      if (r.type != init::Type::probed || r.exec_id != i) co_return fail(Code::protocol, "caisson-init answered another probe");
      results[i] = r.signaled != 0 ? confine::ProbeResult{0, 0, r.status} : confine::ProbeResult{r.error, r.status, 0};
    }
    co_return results;
  }

 private:
  // Also before children are reaped: while another session ends, its first process must be known as ours.
  void take_steps() {
    confine::StepRecord record;
    while (!over_ && said_) {
      const ssize_t n = ::read(started_.status.get(), &record, sizeof record);
      if (n < 0) return;
      over_ = n != static_cast<ssize_t>(sizeof record);
      if (over_) return;
      if (record.error != 0) said_ = std::unexpected(confine::step_error(plan_, record));
      if (record.step == confine::Step::pid) {
        pid_ = record.value;
        // Our child by CLONE_PARENT: where the loop has reaped it already, its number is nobody's yet.
        if (auto first = sys::pidfd_open(pid_); first && pid_ != started_.child_pid) first_ = std::move(*first);
        if (pid_ != started_.child_pid) loop_.expect(pid_);
      }
      listened_ = listened_ || record.step == confine::Step::listener;
    }
  }
  // all: to the exec. Without, to the listener, whose answer the exec waits for where paths are observed.
  Task<Status> read_steps(bool all) {
    for (;;) {
      take_steps();
      if (!said_ || (listened_ && !all)) co_return said_;
      if (over_ && pid_ != 0) co_return Status();
      if (over_) co_return fail(Code::internal, "the canary session ended early");
      // Not for long: what take_steps() has read elsewhere does not come again.
      const std::int64_t now = sys::monotonic_us();
      if (now >= deadline_) co_return fail(Code::timeout, kSilent);
      (void)co_await Readable(loop_, started_.status.get(), std::min(deadline_, now + kLookUs));
    }
  }
  Task<Result<InitEvent>> next() {
    for (;;) {
      const bool ready = co_await Readable(loop_, link_.fd(), deadline_);
      if (!ready) co_return fail(Code::timeout, kSilent);
      CO_TRY_ASSIGN(auto event, link_.receive());
      if (event) co_return std::move(*event);
    }
  }

  Loop& loop_;
  confine::Started started_;
  InitLink link_;
  const confine::Plan& plan_;
  const uid_t uid_;  // confine::Workspace::sole
  Fd first_;         // the session's first process, where it is not the child that was started
  pid_t pid_ = 0;
  Status said_;                           // a step that failed
  bool over_ = false, listened_ = false;  // of the steps
  const std::int64_t deadline_ = sys::monotonic_us() + kDeadlineUs;
};

}  // namespace

Task<Result<confine::ProbeResults>> run_canary(Loop& loop, const confine::Builder& builder, const confine::Template& prepared,
                                               const confine::Workspace& workspace, uid_t uid, init::Targets targets,
                                               Listen listen) {
  CO_TRY_ASSIGN(confine::Started started, builder.start(prepared, workspace, uid, -1));
  Canary canary(loop, std::move(started), *prepared.plan, workspace.sole(uid));
  co_return co_await canary.run(targets, listen);
}

}  // namespace caisson::session
