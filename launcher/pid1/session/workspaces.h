// The table of workspaces: made on request within this server's limits, measured where only that limits their homes, paused,
// and ended when asked or idle. A workspace ends when its last session has ended and no task uses it; then everything that is
// its own goes with it. The default one is always there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "launcher/pid1/session/clients.h"
#include "launcher/pid1/session/host.h"
#include "launcher/pid1/session/sessions.h"
#include "launcher/pid1/session/workspace.h"

namespace caisson::session {

class Workspaces {
 public:
  // Makes the default one, which has no namespaces yet. sessions: used after this alone.
  Workspaces(const Host& host, const Clients& clients, Sessions& sessions);

  [[nodiscard]] Workspace& main() { return *main_; }
  // The home and the ids of the default one, once the features are known. tmp: limits of every workspace's /tmp.
  [[nodiscard]] Status set_up_main(const policy::Limits& tmp);
  [[nodiscard]] Task<Result<confine::Workspace>> make_place(uid_t uid, gid_t gid, std::uint64_t disk_bytes) const;

  // Whether a workspace with these properties may be made now.
  [[nodiscard]] Status admit(const WorkspaceRequest& request) const;
  // What caisson-homes says of its home, for make(), and whose uid it is.
  void find_home(const WorkspaceRequest& request, Homes::Done done) const;
  [[nodiscard]] Task<Result<json::Value>> make(WorkspaceRequest request, Result<json::Value> home);
  // While the caller has it the workspace is there.
  [[nodiscard]] std::shared_ptr<const void> use(Workspace& workspace);
  // In the table from here on. Errors: as admit().
  [[nodiscard]] Result<json::Value> add(const WorkspaceRequest& request, const json::Value& home, confine::Workspace place);
  // The one that a request names. Error: not_found, also while it ends.
  [[nodiscard]] Result<Workspace*> find(const json::Value& body) const;
  [[nodiscard]] json::Value list() const;
  void forget_domains();  // made of policies that are in force no more
  // Stops or continues everything in it; null where `done` is called later.
  [[nodiscard]] Result<json::Value> pace(Workspace& workspace, bool pause, Homes::Done done);
  // A client waits for its end. Error: permission_denied, for the default one.
  [[nodiscard]] Status destroy(Workspace& workspace, const std::string& reason, std::uint64_t client, std::int64_t request);
  // After a session's end: ends what is ending, lets time run out for what is idle.
  void settle(const std::string& name);

 private:
  void settle_later(const std::string& name);
  void end(Workspace& workspace, const std::string& reason);
  void measure_later(const Workspace& workspace, std::int64_t delay_us);
  [[nodiscard]] Workspace* same(const std::string& name, const std::string& since) const;
  [[nodiscard]] json::Value describe(const Workspace& workspace) const;

  const Host& host_;
  const Clients& clients_;
  Sessions& sessions_;
  std::map<std::string, std::unique_ptr<Workspace>> workspaces_;
  Workspace* const main_;
  policy::Limits tmp_limits_;
};

}  // namespace caisson::session
