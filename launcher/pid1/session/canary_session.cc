#include "launcher/pid1/session/canary_session.h"

#include <signal.h>

#include <optional>
#include <utility>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/init_link.h"
#include "launcher/common/confine/step_error.h"
#include "launcher/common/kernel/faults.h"
#include "launcher/pid1/session/process_tree.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kDeadlineUs = 10'000'000;

// Its process is our child, and the loop reaps it: from then on its descriptor kills nobody.
class Canary {
 public:
  Canary(Loop& loop, Fd socket, const confine::Plan& plan, uid_t uid)
      : loop_(loop), link_(std::move(socket)), plan_(plan), uid_(uid) {
    // While another session ends, its process must be known as ours.
    loop_.before_reap(this, [this] {
      if (pid_ != 0 || early_) return false;
      if (auto event = link_.receive(); event && *event && !is_child(**event)) early_ = std::move(*event);
      return pid_ == 0;
    });
  }
  ~Canary() {
    loop_.forget_before_reap(this);
    if (pid_ != 0 && !plan_.pid_ns && sys::pidfd_send_signal(first_.get(), 0)) kill_tree(pid_, uid_);
    (void)sys::pidfd_send_signal(first_.get(), SIGKILL);
  }
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  Task<Result<confine::ProbeResults>> run(const init::Targets& targets, const Listen& listen) {
    const Status asked = link_.probe(targets);  // waits in the socket until init is there
    confine::ProbeResults results;
    CO_TRY_ASSIGN(confine::InitEvent ready, co_await next());
    if (ready.reply.type == init::Type::listener) {
      CO_TRY(listen(ready.fd));
      CO_TRY_ASSIGN(ready, co_await next());  // and our copy is gone
    } else if (plan_.enforces(Mechanism::denial_audit) && !confine::faults::blind()) {
      co_return fail(Code::protocol, "the filter's listener was not handed over (denial_listener)");
    }
    CO_TRY(asked);  // a step that has failed by now, before its listener came or after, says more than EPIPE
    if (ready.reply.type != init::Type::ready) co_return fail(Code::protocol, "caisson-init did not begin with `ready`");
    for (std::uint32_t i = 0; i < results.size(); ++i) {
      CO_TRY_ASSIGN(const confine::InitEvent event, co_await next());
      const init::Reply& r = event.reply;
      if (r.type != init::Type::probed || r.exec_id != i) co_return fail(Code::protocol, "caisson-init answered another probe");
      results[i] = r.signaled != 0 ? confine::ProbeResult{0, 0, r.status} : confine::ProbeResult{r.error, r.status, 0};
    }
    co_return results;
  }

 private:
  // Takes what the builder says first.
  bool is_child(confine::InitEvent& event) {
    if (event.reply.type != init::Type::child || pid_ != 0) return false;
    pid_ = event.reply.pid;
    first_ = std::move(event.fd);
    loop_.expect(pid_);
    return true;
  }
  // The next of init's; those before, of its builder and of the child that becomes it, are taken on the way.
  Task<Result<confine::InitEvent>> next() {
    for (;;) {
      const bool ready = early_ || co_await Readable(loop_, link_.fd(), deadline_);
      if (!ready) co_return fail(Code::timeout, "the canary session did not answer in time");
      auto received = early_ ? std::exchange(early_, std::nullopt) : link_.receive();
      if (!received && received.error().code == Code::not_found) co_return fail(Code::internal, "the canary session ended early");
      if (!received) co_return std::unexpected(std::move(received).error());
      auto& event = *received;
      if (!event || is_child(*event)) continue;
      for (const confine::StepRecord& record : event->steps)
        if (record.error != 0) co_return std::unexpected(confine::step_error(plan_, record));
      if (event->reply.type != init::Type::steps) co_return std::move(*event);
    }
  }

  Loop& loop_;
  confine::InitLink link_;
  const confine::Plan& plan_;
  const uid_t uid_;  // confine::Workspace::sole
  Fd first_;
  pid_t pid_ = 0;
  std::optional<confine::InitEvent> early_;
  const std::int64_t deadline_ = sys::monotonic_us() + kDeadlineUs;
};

}  // namespace

Task<Result<confine::ProbeResults>> run_canary(Loop& loop, const confine::Builder& builder, const confine::Template& prepared,
                                               const confine::Workspace& workspace, uid_t uid, init::Targets targets,
                                               Listen listen) {
  CO_TRY_ASSIGN(Fd socket, builder.start(prepared, workspace, uid, std::nullopt));
  Canary canary(loop, std::move(socket), *prepared.plan, workspace.sole(uid));
  co_return co_await canary.run(targets, listen);
}

}  // namespace caisson::session
