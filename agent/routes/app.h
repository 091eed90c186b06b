// App: the policy between the HTTP server and the handlers. For each head, before the body: origin, key, then the route.
// A client without a key learns nothing about which paths exist.
#pragma once

#include <string>
#include <vector>

#include "agent/auth/failures.h"
#include "agent/auth/key.h"
#include "agent/auth/origin.h"
#include "agent/http/server.h"
#include "agent/routes/router.h"

namespace caisson::routes {

struct AppSettings {
  std::string api_key;       // ignored when auth_off
  bool auth_off = false;     // CAISSON_AUTH=none
  std::string allow_origin;  // CAISSON_ALLOW_ORIGIN
  std::string allow_host;    // CAISSON_ALLOW_HOST
};

class App final : public http::Application {
 public:
  App(Services& services, const AppSettings& settings, const std::vector<const Route*>& table);
  asio::awaitable<http::Admission> admit(http::Request head) override;

 private:
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
