// The uids of sessions. With user namespaces, or in a workspace that was made, a session has its workspace's. In T0 each session
// of the default workspace has one for itself, and one that was given back is given again after all others: what its session
// may have left belongs to nobody for as long as possible.
#pragma once

#include <deque>

#include "launcher/pid1/session/workspace.h"

namespace caisson::session {

struct Host;

class Uids {
 public:
  static constexpr uid_t kFirst = 21000, kMost = 9000;  // never a workspace's

  explicit Uids(const Host& host) : host_(host) {}
  // Error: limit.
  [[nodiscard]] Result<uid_t> take(const Workspace& workspace);
  void give_back(uid_t uid);  // one of the workspace itself stays its

 private:
  const Host& host_;
  uid_t given_ = 0;
  std::deque<uid_t> free_;
};

}  // namespace caisson::session
