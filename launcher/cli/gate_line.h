// A line to caisson-gate, which the running launcher gives to whoever reached its control socket: one question, one answer.
#pragma once

#include <string>

#include "launcher/cli/commands.h"
#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"
#include "launcher/common/tables/way_ops.h"

namespace caisson::cli {

class GateLine {
 public:
  // open: where no session of the workspace has a way out yet, one is made. Errors: those of ControlClient; unavailable without a
  // way out; not_found, no such workspace.
  [[nodiscard]] static Result<GateLine> connect(const std::string& workspace, const Options& options, bool open = false);
  // Once. The answer, or its error.
  [[nodiscard]] Result<json::Value> ask(way::Op op, json::Value request) const;

 private:
  explicit GateLine(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
};

}  // namespace caisson::cli
