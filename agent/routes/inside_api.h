// InsideApi: the API for programs in sessions, where the policy of their domain opens areas of it (`api`). It listens in the
// network of the workspace, which the agent cannot enter: the launcher makes the socket. Commands of such a session get its
// address and a token (auth/session_tokens.h) as variables. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "agent/bridge/openings.h"

namespace caisson::auth {
class Gate;
}
namespace caisson::http {
class Server;
}

namespace caisson::routes {

class InsideApi {
 public:
  InsideApi(bridge::LauncherClient& launcher, bridge::Openings& openings, auth::Gate& gate, http::Server& server)
      : launcher_(launcher), openings_(openings), gate_(gate), server_(server), changed_(launcher.executor()) {}
  InsideApi(const InsideApi&) = delete;
  InsideApi& operator=(const InsideApi&) = delete;

  // For a command of that session. Empty: its policy opens nothing, it has a network of its own (isolated), or the workspace has
  // none here (tiers T0 and T1).
  [[nodiscard]] asio::awaitable<bridge::Environment> variables(std::shared_ptr<bridge::SessionHandle> session);
  void workspace_ended(const std::string& name);

 private:
  struct Door {
    bool settled = false;
    std::string url;  // "": it cannot be had
    std::shared_ptr<void> open;
  };
  using Key = std::pair<std::string, bool>;  // a workspace, and whether in its network with a way out
  [[nodiscard]] asio::awaitable<std::shared_ptr<const Door>> door_of(Key key);
  [[nodiscard]] task<void> make(Key key, std::shared_ptr<Door> door);

  bridge::LauncherClient& launcher_;
  bridge::Openings& openings_;
  auth::Gate& gate_;
  http::Server& server_;
  std::map<Key, std::shared_ptr<Door>> doors_;
  bridge::Notifier changed_;
};

}  // namespace caisson::routes
