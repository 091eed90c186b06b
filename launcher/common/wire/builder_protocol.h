// Requests of the launcher to caisson-builder, over one SOCK_SEQPACKET pair each: fixed-size native structs with descriptors.
// Both ends are built together. A request is answered over the socket that comes with it (`answer`), never over the pair itself,
// so that requests are independent of each other: by a `child` message (common/wire/init_protocol.h) where a process was made, by
// step records (steps.h), and by descriptors with the last of these. The end of that socket without a last record is a failure.
#pragma once

#include <cstdint>

#include "launcher/common/base/scm.h"

namespace caisson::builder {

enum class Op : std::uint32_t {
  fork,       // makes a builder that serves `control`, in the user namespace `user_ns` where that comes along
  workspace,  // enters a new user namespace for good and makes what a workspace has: hands over user, net, mount and home
  tree,       // builds a policy's mount tree and Landlock ruleset: hands over mount, ruleset
  session,    // starts a session, whose socket `answer` becomes
  connect,    // makes a socket in a workspace's network namespace (connect.h): hands it over
};

// Added to a port: the socket listens there, and is not connected.
inline constexpr std::uint32_t kListens = 1U << 16;

// What comes with a request: in this order, those whose bit is set. line: the workspace's to caisson-gate, of a session that is
// connected.
enum class Carried : std::uint32_t { answer, control, user_ns, plan, net_ns, mount_ns, landlock, cgroup, protect, notes, line };
inline constexpr std::uint32_t kCarried = static_cast<std::uint32_t>(Carried::line) + 1;

struct Request {
  Op op;
  std::uint32_t carried;      // bits of Carried
  std::uint64_t plan_number;  // of the plan's bytes: one plan is read once
  std::uint32_t uid, gid;     // of a session in T0
  std::uint32_t port;         // of a socket that is made, and kListens
  char whose[92];             // of a session that is connected: "session domain" (egress/connector.h)
};

}  // namespace caisson::builder
