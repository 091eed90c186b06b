// Relay: raw bytes to and from one program of a session, such as caisson-relay for one client of a socket in there. Its pipes are
// the back-pressure: what the program does not take is not read from the client, and what the client does not take waits in the
// pipe.
#pragma once

#include <memory>
#include <string>

#include "agent/services/program/program.h"

namespace caisson::services {

class Relay {
 public:
  using Pointer = std::shared_ptr<Relay>;

  // Errors: as Program::launch().
  [[nodiscard]] static task<Pointer> start(bridge::LauncherClient& launcher, ProgramSpec spec);
  ~Relay();  // ends the program
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // At most `most` bytes, as soon as there are some; "": nothing more comes.
  [[nodiscard]] static task<std::string> read(Pointer self, std::size_t most);
  // Returns when the pipe has taken all of it.
  [[nodiscard]] static task<void> write(Pointer self, std::string bytes);
  // Both end: a read that waits gets "", a write an error.
  void end();
  [[nodiscard]] const Program::Pointer& program() const { return program_; }

 private:
  explicit Relay(Program::Pointer program) : program_(std::move(program)) {}
  const Program::Pointer program_;
};

}  // namespace caisson::services
