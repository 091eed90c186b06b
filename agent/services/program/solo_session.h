// SoloSession: a session of the launcher that serves one request, or one REPL, and is gone with its owner, however that ends.
// Quota bounds how many of them one workspace has, those that wait for work included.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/config.h"
#include "agent/services/common/quota.h"
#include "agent/services/program/command.h"

namespace caisson::services {

// What the sessions of one workspace's code share.
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

  struct Place {
    std::string domain, label;
    bool isolated = false;           // with a home, a /tmp and a network of its own
    std::uint64_t memory_bytes = 0;  // of all that runs in it; 0: as much as the policy allows
    bool keep = false;               // it outlives the agent, and so do its programs
  };
  // limit: the workspace has as many as it may have.
  [[nodiscard]] static task<Pointer> create(std::shared_ptr<CodeContext> context, Place place);
  // One that an agent before has left, with its program.
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
  // Why it ended, for people; "" when it is not known.
  [[nodiscard]] std::string end_text() const;

 private:
  SoloSession(std::shared_ptr<CodeContext> context, std::shared_ptr<bridge::SessionHandle> handle);

  std::shared_ptr<CodeContext> context_;
  std::shared_ptr<bridge::SessionHandle> handle_;
  std::vector<CommandPtr> commands_;
  bool keep_ = false;
};

// How long the end of a program that was killed is awaited.
inline constexpr std::chrono::seconds kEndGrace{5};

// Waits until the program has ended or the deadline passed; true: it has ended. `gone`: given up when it becomes true.
[[nodiscard]] asio::awaitable<bool> await_end(SoloSession::CommandPtr command, bridge::Clock::time_point deadline,
                                              std::shared_ptr<const bool> gone = nullptr);

// The same, but returns after any change, such as output.
[[nodiscard]] asio::awaitable<bool> await_change(SoloSession::CommandPtr command, bridge::Clock::time_point deadline,
                                                 std::shared_ptr<const bool> gone = nullptr);

// What a program that has ended was ended by, for people; "" when it ended by itself.
[[nodiscard]] asio::awaitable<std::string> why_ended(SoloSession::Pointer session, SoloSession::CommandPtr command);

// Why a program is over that has said with which exit code it ends, or was ended.
[[nodiscard]] bridge::End end_of_program(const SoloSession& session, const Command& command, int exit_code);

// How a program ended, as shells say it: 124 when its time was over, 128 + number for a signal.
[[nodiscard]] int exit_code_of(const Command& command, bool timed_out);

// What a session of the domain is narrowed to, in bytes, for so many MiB; 0: the policy's limit holds, which no job can raise.
[[nodiscard]] task<std::uint64_t> memory_limit(bridge::LauncherClient& launcher, std::string domain, std::int64_t mib);

}  // namespace caisson::services
