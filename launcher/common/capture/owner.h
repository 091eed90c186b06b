// Whose connection it is: the cgroup of the socket at the client's end, as sock_diag(7) tells it. Every socket keeps the cgroup
// of the process that made it, whoever holds it later, and no session can leave its own.
#pragma once

#include <cstdint>
#include <optional>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::capture {

class Owners {
 public:
  // The socket to ask by, of the network namespace that the caller is in. It asks about that namespace, whoever holds it.
  [[nodiscard]] static Result<Fd> open();
  explicit Owners(Fd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] Fd socket() && { return std::move(socket_); }
  // The id of the cgroup that made the other end of `accepted`, a TCP connection within the namespace; nullopt: that end is gone,
  // or the kernel does not say. Never waits.
  [[nodiscard]] std::optional<std::uint64_t> cgroup_of(int accepted);

 private:
  Fd socket_;
  std::uint32_t last_ = 0;
};

}  // namespace caisson::capture
