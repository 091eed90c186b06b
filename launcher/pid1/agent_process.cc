#include "launcher/pid1/agent_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/helper.h"
#include "launcher/common/ipc/agent_settings.h"

namespace caisson {
namespace {

constexpr std::int64_t kDropDelayUs = 10'000;  // what it said last is read, so that a violation is on record
constexpr std::int64_t kFirstDelayUs = 50'000, kLongestDelayUs = 10'000'000, kAgentSettledUs = 30'000'000;
constexpr std::int64_t kServedDelayUs = 1'000'000, kShortUs = 5'000'000;
constexpr int kShortLives = 3;

std::vector<std::string> environment(const Options& o, bool restarted) {
  std::vector<std::string> env = confine::passed_on(kAgentVariables);
  env.insert(env.end(), {std::string("CAISSON_RESTARTED=") + (restarted ? "1" : ""),  // hooks of the start run once
                         "CAISSON_PORT=" + std::to_string(o.port), "CAISSON_BIND=" + o.bind, "WORKSPACE=" + o.default_cwd,
                         "CAISSON_SHUTDOWN_SECONDS=" + std::to_string(o.shutdown_seconds),
                         o.auth_off ? "CAISSON_AUTH=none" : "CAISSON_AUTH=key"});
  if (!o.auth_off) env.push_back("SANDBOX_API_KEY=" + o.api_key);
  return env;
}

}  // namespace

std::string AgentProcess::uid(unsigned uid) const { return operations_.features().change_uid.ok() ? std::to_string(uid) : "-"; }

Status AgentProcess::start() {
  if (::stat(options_.agent.c_str(), &program_) != 0) return sys_error(quote(options_.agent));
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  TRY(sys::set_nonblocking(pair.second.get(), true));
  if (started_us_ == 0 && !confine::passed_on(kCourierAddresses).empty()) {
    TRY_ASSIGN(courier_line_, sys::seqpacket_pair());
    start_courier();
  }
  TRY_ASSIGN(confine::Running running, confine::start_helper({.file = "caisson-seal",
                                                              .argv = {"agent", uid(options_.agent_uid), options_.agent},
                                                              .env = environment(options_, started_us_ != 0),
                                                              .in = courier_line_.first.get(),
                                                              .out = STDOUT_FILENO,
                                                              .fd3 = pair.second.get()}));
  const pid_t pid = pid_ = running.pid;
  pidfd_ = std::move(running.pidfd);
  started_us_ = sys::monotonic_us();
  loop_.on_exit(pid, [this](const ChildExit& exit) { exited(exit); });
  operations_.record(audit::Event::agent_start,
                     {{"pid", pid}, {"uid", operations_.features().change_uid.ok() ? options_.agent_uid : ::geteuid()}});
  client_ = operations_.serve(std::move(pair.first), session::Operations::Role::agent, [this, pid](const std::string& violation) {
    if (!violation.empty()) {
      operations_.record(audit::Event::agent_violation, {{"pid", pid}, {"what", violation}});
      sys::say("caisson-launcher: the agent broke the protocol (" + violation + "): killed");
    }
    // Without its connection an agent is of no use, and one that broke the protocol is not to be trusted with a second.
    if (pid_ == pid) (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
  });
  return {};
}

// The agent and it have one line, of which we keep both ends: either may end and be started again, and what was asked meanwhile
// waits for it.
void AgentProcess::start_courier() {
  const std::int64_t started = sys::monotonic_us();
  const auto later = [this, started](const json::Value& why) {
    operations_.record(audit::Event::courier_exit, why);
    const bool settled = sys::monotonic_us() - started > kAgentSettledUs;
    courier_delay_us_ = settled ? kFirstDelayUs : std::clamp(courier_delay_us_ * 2, kFirstDelayUs, kLongestDelayUs);
    loop_.after(courier_delay_us_, [this] { start_courier(); });
  };
  auto running = confine::start_helper({.file = "caisson-seal",
                                        .argv = {"courier", uid(options_.agent_uid + 2), sys::program_path("caisson-courier")},
                                        .env = confine::passed_on(kCourierVariables),
                                        .fd3 = courier_line_.second.get()});
  if (!running) return later({{"what", running.error().text()}});
  operations_.record(audit::Event::courier_start, {{"pid", running->pid}});
  loop_.on_exit(running->pid, [later, pid = running->pid](const ChildExit& exit) {
    later({{"pid", pid}, {"signaled", exit.signaled}, {"status", exit.status}});
  });
}

void AgentProcess::exited(const ChildExit& exit) {
  operations_.record(audit::Event::agent_exit, {{"pid", pid_}, {"signaled", exit.signaled}, {"status", exit.status}});
  pid_ = 0;
  pidfd_.reset();
  // The state that the last agent left may have caused the crash. SIGKILL comes from outside, so it does not count.
  const bool killed = exit.signaled && exit.status == SIGKILL;
  const bool served = operations_.took_up() && (killed || sys::monotonic_us() - started_us_ > kShortUs);
  short_lives_ = served ? 0 : short_lives_ + 1;
  if (short_lives_ >= kShortLives) {
    short_lives_ = 0;
    operations_.record(audit::Event::agent_violation, {{"what", "agents end as they take up what one has left: it is dropped"}});
    sys::say("caisson-launcher: agents end as they take up what one has left: its sessions end");
    operations_.forget_kept();
  }
  // Usually closed by now. Whoever else holds its end must not go on in its name, beside the next agent.
  loop_.after(kDropDelayUs, [this, client = client_] { operations_.drop(client); });
  if (stopped_) return stopped_();
  if (delay_us_ == 0 && !operations_.took_up() && !exit.signaled && exit.status == code_exit_status(Code::invalid_argument))
    return refused_();
  sys::say(std::string("caisson-launcher: the agent ended (") + (exit.signaled ? "signal " : "status ") +
           std::to_string(exit.status) + "), it is started again");
  restart_later();
}

void AgentProcess::restart_later() {
  const bool settled = sys::monotonic_us() - started_us_ > kAgentSettledUs;
  delay_us_ = std::exchange(asked_, false) || settled || delay_us_ == 0
                  ? kFirstDelayUs
                  : std::min(delay_us_ * 2, operations_.took_up() ? kServedDelayUs : kLongestDelayUs);
  loop_.after(delay_us_, [this] {
    const Status done = stopped_ ? Status{} : start();
    if (done) return;
    sys::say("caisson-launcher: the agent cannot be started: " + done.error().text());
    restart_later();
  });
}

void AgentProcess::restart(bool changed_only) {
  if (pid_ == 0 || stopped_) return;  // one is about to start
  struct stat now{};
  if (changed_only && (::stat(options_.agent.c_str(), &now) != 0 ||
                       (now.st_dev == program_.st_dev && now.st_ino == program_.st_ino && now.st_size == program_.st_size &&
                        now.st_mtim.tv_sec == program_.st_mtim.tv_sec && now.st_mtim.tv_nsec == program_.st_mtim.tv_nsec)))
    return;
  asked_ = true;
  (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);  // as if it had died: there is one way to be taken up
}

void AgentProcess::stop(std::function<void()> done) {
  stopped_ = std::move(done);
  if (pid_ == 0) return stopped_();
  (void)sys::pidfd_send_signal(pidfd_.get(), SIGTERM);
  loop_.after(6'000'000 + options_.shutdown_seconds * std::int64_t{1'000'000}, [this] {
    if (pid_ != 0) (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
  });
}

}  // namespace caisson
