// The running launcher, asked over its control socket, which serves root alone. One question at a time.
#pragma once

#include <string_view>

#include "launcher/cli/commands.h"
#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"
#include "launcher/common/ipc/channel.h"

namespace caisson::cli {

// The code that an answer names; internal: a word of another release.
[[nodiscard]] Code code_from(std::string_view name);

class ControlClient {
 public:
  // Errors: unavailable when no launcher answers there, permission_denied.
  [[nodiscard]] static Result<ControlClient> connect(const Options& options);
  // The reply's body, or its error.
  [[nodiscard]] Result<json::Value> ask(std::string_view op, json::Value request);
  // The same, with the one descriptor that comes with it.
  [[nodiscard]] Result<Fd> ask_for_fd(std::string_view op, json::Value request);

 private:
  explicit ControlClient(Fd fd) : fd_(std::move(fd)) {}

  [[nodiscard]] Result<ipc::Message> message(std::string_view op, json::Value request);

  Fd fd_;
  int id_ = 0;
};

}  // namespace caisson::cli
