// Commands that print a credential. Each runs in a session of its own, of the domain `credentials` in the workspace that the
// credential is for: the launcher makes it for us over its control socket, as for any operator, with its walls, limits and log.
// The gate believes nothing of a session but a bounded output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/loop.h"
#include "launcher/common/base/task.h"
#include "launcher/common/ipc/channel.h"

namespace caisson::gate {

class Commands {
 public:
  // Without the line's end, at most kMaxCredentialFile bytes (secrets.h). An error says nothing of what was printed.
  using Done = std::function<void(Result<std::string> printed)>;
  // run: the launcher's directory, with its control socket.
  Commands(Loop& loop, const std::string& run) : loop_(loop), path_(run + "/control.sock") {}
  Commands(const Commands&) = delete;

  // key: what it is for; label: for the session's log. `done` is called once, never before this returns.
  void run(std::string workspace, std::string key, std::string command, std::string label, Done done);
  // Of those that wait, what nobody wants any more goes, and its `done` with it.
  void forget(const std::string& workspace, const std::string& key);

 private:
  // Commands of one workspace that hang delay those of no other.
  static constexpr std::size_t kMost = 64, kMostOf = 2, kMostWaitingOf = 256;
  static constexpr std::int64_t kPatienceUs = 30'000'000;
  // A launcher that starts has its control socket last.
  static constexpr std::int64_t kStartUs = 10'000'000, kAgainUs = 100'000;
  struct Run {
    std::string workspace, key, command, label;
    Done done;
    std::int64_t until_us;                  // it waits for the socket
    std::optional<Task<Status>> task = {};  // none: it waits
  };
  void begin_later(std::int64_t wait_us);
  void begin();
  [[nodiscard]] Task<Status> carry_out(Run& run, Result<Fd> control);
  [[nodiscard]] Task<Result<std::string>> print(const Run& run, Result<Fd> connected);
  [[nodiscard]] Task<Result<ipc::Message>> ask(int control, ipc::Op op, json::Value request, std::int64_t deadline_us);
  [[nodiscard]] Task<Result<ipc::Message>> hear(int control, std::int64_t deadline_us);

  Loop& loop_;
  const std::string path_;
  std::list<Run> runs_;  // those that wait, too, in order
  bool begins_ = false;
};

}  // namespace caisson::gate
