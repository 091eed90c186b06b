// SoloSession: a session of the launcher for one request or one REPL, which ends with its owner, however the owner ends. Quota
// bounds how many of them one workspace has, including prepared ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/quota.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/program/command.h"

namespace caisson::services {

// The state that all code sessions of one workspace share.
struct CodeContext {
  CodeContext(bridge::LauncherClient& l, const Config& c)
      : launcher(l), config(c), budget(budget_of(c)), quota(std::make_shared<Quota>(l.executor(), c.max_code_sessions)) {}
  bridge::LauncherClient& launcher;
  Config config;
  std::shared_ptr<OutputBudget> budget;
  std::shared_ptr<Quota> quota;
};

class SoloSession {
 public:
  using Pointer = std::shared_ptr<SoloSession>;
  using CommandPtr = std::shared_ptr<Command>;

  struct Setup {
    std::string domain, label;
    bool isolated = false;           // with a home, a /tmp and a network of its own
    std::uint64_t memory_bytes = 0;  // limit of the whole session; 0: the policy's
    bool keep = false;               // it outlives the agent, and so do its programs
  };
  // Code::limit: the workspace has its most.
  [[nodiscard]] static task<Pointer> create(std::shared_ptr<CodeContext> context, Setup setup);
  // A session of the previous agent, with its program.
  [[nodiscard]] static Pointer restore(std::shared_ptr<CodeContext> context, std::shared_ptr<bridge::SessionHandle> handle,
                                       CommandPtr command);
  ~SoloSession();
  SoloSession(const SoloSession&) = delete;
  SoloSession& operator=(const SoloSession&) = delete;

  // Starts a program, with its stdin open. not_found: the program or its directory is not there.
  [[nodiscard]] task<CommandPtr> start(bridge::ExecRequest request);
  // Ends everything in it at once.
  [[nodiscard]] task<void> end(std::string reason);

  [[nodiscard]] const std::shared_ptr<bridge::SessionHandle>& handle() const { return handle_; }
  [[nodiscard]] bool alive() const { return !handle_->ended; }
  // Why it ended, for people; "": unknown.
  [[nodiscard]] std::string end_text() const;

 private:
  SoloSession(std::shared_ptr<CodeContext> context, std::shared_ptr<bridge::SessionHandle> handle);

  std::shared_ptr<CodeContext> context_;
  std::shared_ptr<bridge::SessionHandle> handle_;
  std::vector<CommandPtr> commands_;
  bool keep_ = false;
};

// How long to wait for the end of a killed program.
inline constexpr std::chrono::seconds kEndGrace{5};

// Waits for the program's end or the deadline; true: it has ended. Gives up when `gone` becomes true.
[[nodiscard]] asio::awaitable<bool> await_end(SoloSession::CommandPtr command, bridge::Clock::time_point deadline,
                                              std::shared_ptr<const bool> gone = nullptr);

// The same, but returns after any change, such as output.
[[nodiscard]] asio::awaitable<bool> await_change(SoloSession::CommandPtr command, bridge::Clock::time_point deadline,
                                                 std::shared_ptr<const bool> gone = nullptr);

// What ended a program, for people; "": it ended by itself.
[[nodiscard]] asio::awaitable<std::string> why_ended(SoloSession::Pointer session, SoloSession::CommandPtr command);

// The end of a program that has reported its exit code or was ended.
[[nodiscard]] bridge::End end_of_program(const SoloSession& session, const Command& command, int exit_code);

// A program's exit code in the convention of shells: 124 after a timeout, 128 + number for a signal.
[[nodiscard]] int exit_code_of(const Command& command, bool timed_out);

// The memory limit of a session of the domain, in bytes, for a request of `mib`. 0: the policy's limit applies, which no request
// can raise.
[[nodiscard]] task<std::uint64_t> memory_limit(bridge::LauncherClient& launcher, std::string domain, std::int64_t mib);

}  // namespace caisson::services
