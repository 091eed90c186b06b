// Sends and receives one IPC message: strict JSON plus descriptors over SOCK_SEQPACKET. Anything malformed (truncated,
// too many descriptors, not JSON) is Code::protocol: the peer is broken or hostile and the caller ends it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"
#include "launcher/common/ipc/ops.h"

namespace caisson::ipc {

struct Message {
  json::Value body;     // always an object
  std::vector<Fd> fds;  // at most kMaxFds, all O_CLOEXEC
};

// Fails with limit when the body is over kMaxMessage, io (sys = EAGAIN when the peer does not read) otherwise.
[[nodiscard]] Status send(int socket, const json::Value& body, std::span<const int> fds = {});

enum class Wait { no, yes };
// nullopt: nothing there (Wait::no only). not_found: the peer closed the connection.
[[nodiscard]] Result<std::optional<Message>> receive(int socket, Wait wait);

}  // namespace caisson::ipc
