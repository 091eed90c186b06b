// The running launcher, asked over its control socket, which serves root alone. One question at a time.
#pragma once

#include <string_view>

#include "launcher/cli/commands.h"
#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"

namespace caisson::cli {

class ControlClient {
 public:
  // Errors: unavailable when no launcher answers there, permission_denied.
  [[nodiscard]] static Result<ControlClient> connect(const Options& options);
  // The reply's body, or its error.
  [[nodiscard]] Result<json::Value> ask(std::string_view op, json::Value request);

 private:
  explicit ControlClient(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
  int id_ = 0;
};

}  // namespace caisson::cli
