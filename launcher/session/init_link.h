// The launcher's end of the socket to one caisson-init. What comes from there is hostile until checked: exact size, known
// type, at most one descriptor and only where it belongs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/fd.h"
#include "launcher/base/init_protocol.h"
#include "launcher/base/probes.h"
#include "launcher/base/result.h"

namespace caisson::session {

struct ExecRequest {
  std::uint32_t id = 0;
  std::vector<std::string> argv, env;  // env: NAME=value
  std::string cwd;
  bool pty = false;
  std::uint32_t cols = 80, rows = 24;
  unsigned umask = 022;
};

struct InitEvent {
  init::Reply reply;
  Fd fd;  // the PTY master, with `started` of a pty exec; the listener
};

class InitLink {
 public:
  explicit InitLink(Fd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] int fd() const { return socket_.get(); }

  // stdio: for pipes [stdin read end or -1, stdout, stderr]; ignored for a PTY. Errors: invalid_argument for strings with
  // NUL or too many of them; limit when so much waits for init that a go() would not fit behind it.
  [[nodiscard]] Status exec(const ExecRequest& request, const int (&stdio)[3]);
  // Lets the command of the last exec() begin. To be sent before anything else.
  [[nodiscard]] Status go(std::uint32_t exec_id);
  [[nodiscard]] Status signal(std::uint32_t exec_id, int signal, init::Scope scope);
  // The canary probes, answered by kProbeCount replies of type probed.
  [[nodiscard]] Status probe(const init::Targets& targets);
  // nullopt: nothing there. not_found: init is gone. protocol: it is not what it should be.
  [[nodiscard]] Result<std::optional<InitEvent>> receive();

 private:
  [[nodiscard]] Status room_for(std::size_t bytes) const;
  [[nodiscard]] Status send(const std::string& message, const int* fds = nullptr, std::size_t count = 0);
  Fd socket_;
};

}  // namespace caisson::session
