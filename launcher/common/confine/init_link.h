// The launcher's end of the socket to one caisson-init, on which the builder and the child that becomes it speak before. What
// comes from there is hostile until checked: exact size, known type, at most one descriptor and only where it belongs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"
#include "launcher/common/wire/init_protocol.h"
#include "launcher/common/wire/probes.h"
#include "launcher/common/wire/steps.h"

namespace caisson::confine {

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
  Fd fd;                          // the PTY master, with `started` of a pty exec; the listener; a child's pidfd
  std::vector<StepRecord> steps;  // of type steps; `reply` then has nothing but the type
  std::vector<Fd> made;           // with steps, of a builder
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
  // Lets a child go on that waits for its id maps.
  [[nodiscard]] Status maps_written();
  // nullopt: nothing there. not_found: the other end is gone. protocol: it is not what it should be.
  [[nodiscard]] Result<std::optional<InitEvent>> receive();

 private:
  [[nodiscard]] Status room_for(std::size_t bytes) const;
  [[nodiscard]] Status send(const std::string& message, const int* fds = nullptr, std::size_t count = 0);
  Fd socket_;
};

}  // namespace caisson::confine
