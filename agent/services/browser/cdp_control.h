// CdpControl: the line to caisson-cdp (agent/cdp/README.md) over the stdin and stdout of its Program: a JSON object a line, both
// ways. The program runs beside pages of strangers: events are bounded and strictly parsed, and a broken one ends the
// program.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/services/program/program.h"

namespace caisson::services {

class CdpControl {
 public:
  using Pointer = std::shared_ptr<CdpControl>;
  using Told = std::function<void(const json::Value& event)>;

  [[nodiscard]] static Pointer over(Program::Pointer program, Told told);
  // Errors: io (the program has ended), limit (it does not read).
  [[nodiscard]] static Status tell(const Pointer& self, const json::Value& command);

 private:
  CdpControl(Program::Pointer program, Told told) : program_(std::move(program)), told_(std::move(told)) {}
  static task<void> read(Pointer self);
  static task<void> write(Pointer self);
  [[nodiscard]] Status take(std::string_view bytes);

  const Program::Pointer program_;
  const Told told_;
  std::string line_, waiting_;
  bool writing_ = false;
};

}  // namespace caisson::services
