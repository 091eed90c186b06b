#include "launcher/agent_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "launcher/base/agent_variables.h"
#include "launcher/base/sys.h"
#include "launcher/base/word.h"
#include "launcher/confine/helper.h"

namespace caisson {
namespace {

constexpr std::int64_t kDropDelayUs = 10'000;  // what it said last is read, so that a violation is on record
constexpr std::int64_t kFirstDelayUs = 50'000, kLongestDelayUs = 10'000'000, kSettledUs = 30'000'000;
constexpr std::int64_t kServedDelayUs = 1'000'000, kShortUs = 5'000'000;
constexpr int kShortLives = 3;

std::vector<std::string> environment(const Options& o, bool restarted) {
  std::vector<std::string> env{"PATH=/usr/bin:/bin",
                               "LANG=C.UTF-8",
                               std::string("CAISSON_RESTARTED=") + (restarted ? "1" : ""),  // hooks of the start run once
                               "CAISSON_PORT=" + std::to_string(o.port),
                               "CAISSON_BIND=" + o.bind,
                               "WORKSPACE=" + o.default_cwd,
                               "CAISSON_SECCOMP_FD=4",  // as caisson-seal leaves it
                               "CAISSON_SHUTDOWN_SECONDS=" + std::to_string(o.shutdown_seconds),
                               o.auth_off ? "CAISSON_AUTH=none" : "CAISSON_AUTH=key"};
  if (!o.auth_off) env.push_back("SANDBOX_API_KEY=" + o.api_key);
  for (std::size_t i = 0; std::cmp_less(i, count_words(kAgentVariables)); ++i)
    if (const std::string name(word(kAgentVariables, i)); const char* value = std::getenv(name.c_str()))
      env.push_back(name + "=" + value);
  return env;
}

}  // namespace

Status AgentProcess::start() {
  const bool change_uid = manager_.features().change_uid.ok();
  if (::stat(options_.agent.c_str(), &program_) != 0) return sys_error(quote(options_.agent));
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  TRY(sys::set_nonblocking(pair.second.get(), true));
  TRY_ASSIGN(confine::Running running,
             confine::start_helper(
                 {.file = "caisson-seal",
                  .argv = {"caisson-seal", "agent", change_uid ? std::to_string(options_.agent_uid) : "-", options_.agent},
                  .env = environment(options_, started_us_ != 0),
                  .out = STDOUT_FILENO,
                  .fd3 = pair.second.get()}));
  const pid_t pid = pid_ = running.pid;
  pidfd_ = std::move(running.pidfd);
  started_us_ = sys::monotonic_us();
  loop_.on_exit(pid, [this](const ChildExit& exit) { exited(exit); });
  manager_.record(audit::Event::agent_start, {{"pid", pid}, {"uid", change_uid ? options_.agent_uid : ::geteuid()}});
  client_ = manager_.serve(std::move(pair.first), session::Manager::Role::agent, [this, pid](const std::string& violation) {
    if (!violation.empty()) {
      manager_.record(audit::Event::agent_violation, {{"pid", pid}, {"what", violation}});
      sys::say("caisson-launcher: the agent broke the protocol (" + violation + "): killed");
    }
    // Without its connection an agent is of no use, and one that broke the protocol is not to be trusted with a second.
    if (pid_ == pid) (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
  });
  return {};
}

void AgentProcess::exited(const ChildExit& exit) {
  manager_.record(audit::Event::agent_exit, {{"pid", pid_}, {"signaled", exit.signaled}, {"status", exit.status}});
  pid_ = 0;
  pidfd_.reset();
  // The state that the last agent left may have caused the crash. SIGKILL comes from outside, so it does not count.
  const bool killed = exit.signaled && exit.status == SIGKILL;
  const bool served = manager_.took_up() && (killed || sys::monotonic_us() - started_us_ > kShortUs);
  short_lives_ = served ? 0 : short_lives_ + 1;
  if (short_lives_ >= kShortLives) {
    short_lives_ = 0;
    manager_.record(audit::Event::agent_violation, {{"what", "agents end as they take up what one has left: it is dropped"}});
    sys::say("caisson-launcher: agents end as they take up what one has left: its sessions end");
    manager_.forget_kept();
  }
  // Usually closed by now. Whoever else holds its end must not go on in its name, beside the next agent.
  loop_.after(kDropDelayUs, [this, client = client_] { manager_.drop(client); });
  if (stopped_) return stopped_();
  sys::say(std::string("caisson-launcher: the agent ended (") + (exit.signaled ? "signal " : "status ") +
           std::to_string(exit.status) + "), it is started again");
  restart_later();
}

void AgentProcess::restart_later() {
  const bool settled = sys::monotonic_us() - started_us_ > kSettledUs;
  delay_us_ = std::exchange(asked_, false) || settled || delay_us_ == 0
                  ? kFirstDelayUs
                  : std::min(delay_us_ * 2, manager_.took_up() ? kServedDelayUs : kLongestDelayUs);
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
