// App: the policy between the HTTP server and the handlers. A head goes through a chain of checks (admission.cc) before the body
// is read. A client without a key learns nothing about which paths exist.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/auth/failures.h"
#include "agent/auth/key.h"
#include "agent/auth/origin.h"
#include "agent/http/server.h"
#include "agent/routes/router.h"

namespace caisson::services {
struct Workspace;
}

namespace caisson::routes {

struct AppSettings {
  std::string api_key;       // ignored when auth_off
  bool auth_off = false;     // CAISSON_AUTH=none
  std::string allow_origin;  // CAISSON_ALLOW_ORIGIN
  std::string allow_host;    // CAISSON_ALLOW_HOST
};

// A request whose head has arrived, and what the checks have found out about it.
struct Arrival {
  http::Request head;
  http::Pairs cors = {};
  Match match = {};
  std::shared_ptr<services::Workspace> workspace = nullptr;  // nullptr: the request names none
};

class App final : public http::Application {
 public:
  App(Services& services, const AppSettings& settings, const std::vector<const Route*>& table);
  asio::awaitable<http::Admission> admit(http::Request head) override;

 private:
  // nullopt: the next check decides. The arrival lives until the last check is over.
  using Answer = std::optional<http::Response>;
  using Check = asio::awaitable<Answer> (App::*)(Arrival&);
  [[nodiscard]] static std::span<const Check> checks();
  asio::awaitable<Answer> check_host(Arrival& arrival);
  asio::awaitable<Answer> check_origin(Arrival& arrival);
  asio::awaitable<Answer> answer_preflight(Arrival& arrival);
  asio::awaitable<Answer> check_identity(Arrival& arrival);
  asio::awaitable<Answer> check_route(Arrival& arrival);
  asio::awaitable<Answer> find_workspace(Arrival& arrival);
  asio::awaitable<Answer> wake_workspace(Arrival& arrival);

  [[nodiscard]] static bool is_public(const Arrival& arrival);
  asio::awaitable<http::Response> refuse_key(std::string remote, bool given);
  [[nodiscard]] bool has_key(const http::Request& head) const;
  [[nodiscard]] http::Pairs cors_headers(const http::Request& head) const;
  [[nodiscard]] http::Response preflight(const http::Request& head) const;

  Services& services_;
  bool auth_off_;
  auth::Key key_;
  auth::OriginRule origins_;
  auth::Failures failures_;
  Router router_;
};

}  // namespace caisson::routes
