// FakeLauncher: the other end of the IPC for tests. Speaks the launcher's protocol on a thread of its own and really starts
// the programs, with pipes or a PTY, but unconfined. Tests can make it refuse, fall silent or vanish.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launcher/common/base/sys.h"
#include "launcher/common/ipc/channel.h"

namespace caisson::testing {

class FakeLauncher {
 public:
  explicit FakeLauncher(std::string home) : home_(std::move(home)) {
    auto pair = sys::seqpacket_pair();
    agent_end_ = std::move(pair->first);
    socket_ = std::move(pair->second);
    auto wake = sys::pipe();
    wake_read_ = std::move(wake->first);
    wake_write_ = std::move(wake->second);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeLauncher() {
    stop();
    for (auto& [key, run] : runs_) {
      ::kill(-run.pid, SIGKILL);
      ::waitpid(run.pid, nullptr, 0);
    }
  }
  Fd take_agent_end() { return std::move(agent_end_); }
  void stop() {
    wake_write_.reset();
    if (thread_.joinable()) thread_.join();
    socket_.reset();
  }

  std::atomic<int> refuse_creates = 0;    // that many session_create fail with limit
  std::atomic<bool> silent = false;       // requests get no answer
  std::atomic<bool> tell_reload = false;  // before the next answer: the policies have changed
  std::atomic<int> sessions_created = 0, sessions_destroyed = 0;
  // The requests for sessions that came so far.
  std::vector<json::Value> creates() {
    const std::lock_guard lock(creates_mutex_);
    return creates_;
  }

 private:
  using Key = std::pair<std::string, std::string>;
  struct Run {
    pid_t pid = -1;
    Fd pidfd;
    bool pty = false;
    std::int64_t kill_at_us = 0;
    std::string end_reason;
  };
  struct Spawned {
    Run run;
    std::vector<Fd> fds;
    const char* step = nullptr;
    int error = 0;
  };

  void serve() {
    while (true) {
      std::vector<pollfd> polls = {{socket_.get(), POLLIN, 0}, {wake_read_.get(), POLLIN, 0}};
      std::vector<Key> keys;
      int wait_ms = -1;
      for (auto& [key, run] : runs_) {
        polls.push_back({run.pidfd.get(), POLLIN, 0});
        keys.push_back(key);
        if (run.kill_at_us > 0) {
          const auto left = static_cast<int>(std::max<std::int64_t>(0, (run.kill_at_us - sys::monotonic_us()) / 1000 + 1));
          wait_ms = wait_ms < 0 ? left : std::min(wait_ms, left);
        }
      }
      ::poll(polls.data(), polls.size(), wait_ms);
      if (polls[1].revents != 0) return;
      for (auto& [key, run] : runs_)
        if (run.kill_at_us > 0 && sys::monotonic_us() >= run.kill_at_us) {
          run.kill_at_us = 0;
          run.end_reason = "hard_timeout";
          ::kill(-run.pid, SIGKILL);
        }
      for (std::size_t i = 0; i < keys.size(); ++i)
        if (polls[i + 2].revents != 0) reap(keys[i]);
      if (polls[0].revents == 0) continue;
      auto message = ipc::receive(socket_.get(), ipc::Wait::yes);
      if (!message) return;
      if (!silent) answer((*message)->body);
    }
  }

  void reap(const Key& key) {
    auto node = runs_.extract(key);
    if (node.empty()) return;
    Run& run = node.mapped();
    int status = 0;
    ::waitpid(run.pid, &status, 0);
    json::Value event = {{"event", "exec_exit"}, {"session", key.first}, {"exec", key.second}};
    if (WIFEXITED(status)) event["exit_code"] = WEXITSTATUS(status);
    else event["signal"] = "SIG" + std::string(::sigabbrev_np(WTERMSIG(status)));
    event["reason"] = !run.end_reason.empty() ? run.end_reason : WIFEXITED(status) ? "exit" : "signal";
    event["rusage"] = {{"user_us", 0}, {"sys_us", 0}, {"max_rss_bytes", 0}};
    (void)ipc::send(socket_.get(), event);
  }

  void refuse(std::int64_t id, std::string code, std::string what, const char* step = nullptr, int error = 0) {
    json::Value e = {{"code", code}, {"what", what}};
    if (step != nullptr) e["step"] = step;
    if (error != 0) e["errno"] = errno_name(error);
    (void)ipc::send(socket_.get(), {{"id", id}, {"ok", false}, {"error", e}});
  }

  void answer(const json::Value& request) {
    if (tell_reload.exchange(false)) (void)ipc::send(socket_.get(), {{"event", "policy_reload"}});
    const auto id = request["id"].get<std::int64_t>();
    const auto op = request["op"].get<std::string>();
    json::Value reply = {{"id", id}, {"ok", true}};
    if (op == "hello") {
      reply.update({{"protocol", 1},
                    {"version", "test"},
                    {"tier", "T3"},
                    {"domains", {"bash", "shell"}},
                    {"home", home_},
                    {"workspace", home_},
                    {"max_sessions", 1000}});
    } else if (op == "session_create") {
      {
        const std::lock_guard lock(creates_mutex_);
        creates_.push_back(request);
      }
      if (refuse_creates > 0) {
        --refuse_creates;
        return refuse(id, "limit", "too many sessions");
      }
      ++sessions_created;
      reply["session"] = "s-" + sys::random_hex(8);
      reply["report"] = {{"schema", 1}};
      reply["tools"] = CAISSON_TOOLS_DIR;
    } else if (op == "session_exec") {
      return exec(id, request);
    } else if (op == "exec_signal") {
      const auto it = runs_.find({request["session"].get<std::string>(), request["exec"].get<std::string>()});
      if (it == runs_.end()) return refuse(id, "not_found", "no such exec");
      const auto name = request["signal"].get<std::string>();
      const int number = name == "SIGTERM" ? SIGTERM : name == "SIGINT" ? SIGINT : SIGKILL;
      if (it->second.pty) kill_posix_session(it->second.pid, number);
      ::kill(-it->second.pid, number);
    } else if (op == "session_destroy") {
      const auto session = request["session"].get<std::string>();
      std::vector<Key> keys;
      for (auto& [key, run] : runs_)
        if (key.first == session) keys.push_back(key);
      for (const Key& key : keys) {
        Run& run = runs_[key];
        run.end_reason = "session_end";
        if (run.pty) kill_posix_session(run.pid, SIGKILL);
        ::kill(-run.pid, SIGKILL);
        reap(key);
      }
      ++sessions_destroyed;
    }
    (void)ipc::send(socket_.get(), reply);
  }

  // Every process whose session id (field 6 of its stat) is the leader's.
  static void kill_posix_session(pid_t leader, int number) {
    for (pid_t pid = leader; pid < leader + 2000; ++pid)
      if (::getsid(pid) == leader) ::kill(pid, number);
  }

  void exec(std::int64_t id, const json::Value& request) {
    Spawned spawned = spawn(request);
    if (spawned.step != nullptr)
      return refuse(id, spawned.error == ENOENT ? "not_found" : "io", spawned.step, spawned.step, spawned.error);
    const std::string name = "e-" + std::to_string(++next_exec_);
    if (request.contains("hard_timeout_ms"))
      spawned.run.kill_at_us = sys::monotonic_us() + request["hard_timeout_ms"].get<std::int64_t>() * 1000;
    json::Value reply = {{"id", id}, {"ok", true}, {"exec", name}, {"pid", spawned.run.pid}};
    reply["stdio"] = spawned.run.pty ? "pty" : "pipes";
    std::vector<int> numbers;
    for (const Fd& fd : spawned.fds) numbers.push_back(fd.get());
    runs_[{request["session"].get<std::string>(), name}] = std::move(spawned.run);
    (void)ipc::send(socket_.get(), reply, numbers);
  }

  Spawned spawn(const json::Value& request) {
    Spawned out;
    out.run.pty = request.contains("pty");
    Fd child[3];
    if (out.run.pty) {
      Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
      ::grantpt(master.get());
      ::unlockpt(master.get());
      winsize size{};
      size.ws_col = request["pty"]["cols"].get<unsigned short>();
      size.ws_row = request["pty"]["rows"].get<unsigned short>();
      ::ioctl(master.get(), TIOCSWINSZ, &size);
      for (Fd& fd : child) fd.reset(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
      out.fds.push_back(std::move(master));
    } else {
      for (int i = 0; i < 3; ++i) {
        auto [read_end, write_end] = std::move(*sys::pipe());
        const bool input = i == 0;
        child[i] = std::move(input ? read_end : write_end);
        if (!input || request.value("stdin", true)) out.fds.push_back(std::move(input ? write_end : read_end));
      }
    }
    std::vector<std::string> argv = request["argv"].get<std::vector<std::string>>();
    json::Value merged = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", home_}, {"USER", "gem"}, {"LANG", "C.UTF-8"}};
    if (request.contains("env")) merged.update(request["env"]);
    std::vector<std::string> env;
    for (const auto& [key, value] : merged.items())
      if (!value.is_null()) env.push_back(key + "=" + value.get<std::string>());
    std::vector<char*> argp, envp;
    for (std::string& word : argv) argp.push_back(word.data());
    for (std::string& word : env) envp.push_back(word.data());
    argp.push_back(nullptr);
    envp.push_back(nullptr);
    const std::string cwd = request.value("cwd", home_);
    auto report = std::move(*sys::pipe());
    out.run.pid = ::fork();
    if (out.run.pid == 0) {  // only async-signal-safe calls from here: the parent has threads
      ::setsid();
      if (out.run.pty) ::ioctl(child[0].get(), TIOCSCTTY, 0);
      for (int i = 0; i < 3; ++i) ::dup2(child[i].get(), i);
      for (const int number : {SIGPIPE, SIGINT, SIGQUIT}) ::signal(number, SIG_DFL);
      int failed[2] = {0, 0};
      if (::chdir(cwd.c_str()) != 0) failed[0] = 1;
      else ::execvpe(argp[0], argp.data(), envp.data());
      failed[1] = errno;
      (void)!::write(report.second.get(), failed, sizeof failed);
      ::_exit(127);
    }
    report.second.reset();
    int failed[2] = {0, 0};
    if (::read(report.first.get(), failed, sizeof failed) > 0) {
      ::waitpid(out.run.pid, nullptr, 0);
      out.step = failed[0] == 1 ? "chdir" : "exec";
      out.error = failed[1];
      return out;
    }
    out.run.pidfd = std::move(*sys::pidfd_open(out.run.pid));
    return out;
  }

  std::string home_;
  Fd agent_end_, socket_, wake_read_, wake_write_;
  std::mutex creates_mutex_;
  std::vector<json::Value> creates_;
  std::map<Key, Run> runs_;
  int next_exec_ = 0;
  std::thread thread_;
};

}  // namespace caisson::testing
