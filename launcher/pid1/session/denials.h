// The launcher's side of caisson-auditor: starts it, gives it the listeners of sessions, takes what it tells about them. What
// comes from there is checked like what comes from any other child: exact parts, bounded JSON; anything else is its end.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "launcher/common/audit/log.h"
#include "launcher/common/base/loop.h"

namespace caisson::session {

class Denials {
 public:
  // For the log of that session, or ("") about the auditor itself. closed: nothing more comes about it.
  using Handler = std::function<void(const std::string& session, audit::Event event, json::Value fields, bool closed)>;
  // uid: its own, where the launcher may give it one (change_uid).
  Denials(Loop& loop, uid_t uid, bool change_uid, Handler handler)
      : loop_(loop), uid_(uid), change_uid_(change_uid), handler_(std::move(handler)) {}
  ~Denials();
  Denials(const Denials&) = delete;

  // Blocks until it has sealed itself, at most some seconds. Later starts follow by themselves, when it ends.
  [[nodiscard]] Status start();
  // From here on it answers. Our own copy of the listener must go, or the calls would hang when the auditor dies. "": a canary.
  // observe: calls that name files come there, too; another process of the auditor's answers, which reads what they name.
  [[nodiscard]] Status watch(const std::string& session, const Fd& listener, const std::string& refusals, bool observe);
  // The session is gone: `done` is called when all about it has been told, or nobody is left to tell it. False: it has been
  // already.
  [[nodiscard]] bool release(const std::string& session, std::function<void()> done);

 private:
  [[nodiscard]] Status launch();
  [[nodiscard]] Status launch_observer();
  [[nodiscard]] Status send(const std::string& message, const int* fds, std::size_t count);
  [[nodiscard]] Result<bool> read();  // false: nothing was there
  [[nodiscard]] Status take(std::string_view message);
  void finish(const std::string& session);
  void exited(const ChildExit& exit);
  void restart_later();

  Loop& loop_;
  const uid_t uid_;
  const bool change_uid_;
  const Handler handler_;
  Fd socket_, pidfd_;
  pid_t pid_ = 0;
  bool observer_ = false;  // this auditor has one
  std::int64_t started_us_ = 0;
  std::map<std::string, std::function<void()>> watched_;  // session -> what its end waits for
  std::set<std::string> observed_;                        // of these, whose paths are
};

}  // namespace caisson::session
