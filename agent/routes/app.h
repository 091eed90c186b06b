// App: the policy between the HTTP server and the handlers. A head goes through a chain of checks (admission.cc) before the body
// is read. A client without a key learns nothing about which paths exist.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/auth/gate.h"
#include "agent/auth/origin.h"
#include "agent/http/rates.h"
#include "agent/http/server.h"
#include "agent/proxy/destination.h"
#include "agent/routes/router.h"

namespace caisson::services {
struct Workspace;
}

namespace caisson::routes {

struct AppSettings {
  auth::GateSettings auth = {};
  std::string allow_origin;        // CAISSON_ALLOW_ORIGIN
  std::string allow_host;          // CAISSON_ALLOW_HOST
  std::string preview_hosts = {};  // CAISSON_PREVIEW_HOSTS
  double requests_per_second = 0;  // CAISSON_REQUESTS_PER_SECOND; 0: no limit
};

// A request whose head has arrived, and the findings of the checks.
struct Arrival {
  http::Request head;
  http::Pairs cors = {};
  Match match = {};
  Result<std::optional<proxy::Destination>> port = std::nullopt;  // of a server in the workspace; nullopt: the request is for us
  auth::Principal principal = {};
  std::shared_ptr<services::Workspace> workspace = nullptr;  // nullptr: the request names none
};

// The area of previews among the scopes of a credential.
inline constexpr std::string_view kPreviewArea = "preview";

// Whether the request is for a server in the workspace.
[[nodiscard]] inline bool goes_to_port(const Arrival& arrival) { return arrival.port && *arrival.port; }

class App final : public http::Application {
 public:
  App(Services& services, const AppSettings& settings, const std::vector<const Route*>& table);
  asio::awaitable<http::Admission> admit(http::Request head) override;

  static constexpr std::size_t kMaxKeysAwaited = 128;  // requests that wait at a time; further ones are checked at once

 private:
  // nullopt: the next check decides. The arrival lives until the last check is over.
  using Answer = std::optional<http::Response>;
  using Check = asio::awaitable<Answer> (App::*)(Arrival&);
  [[nodiscard]] static std::span<const Check> checks();
  asio::awaitable<Answer> check_rate(Arrival& arrival);
  asio::awaitable<Answer> check_host(Arrival& arrival);
  asio::awaitable<Answer> check_origin(Arrival& arrival);
  asio::awaitable<Answer> answer_preflight(Arrival& arrival);
  asio::awaitable<Answer> find_target(Arrival& arrival);
  asio::awaitable<Answer> check_inside(Arrival& arrival);
  asio::awaitable<Answer> await_key(Arrival& arrival);
  asio::awaitable<Answer> exchange_credential(Arrival& arrival);
  asio::awaitable<Answer> check_port(Arrival& arrival);
  asio::awaitable<Answer> check_identity(Arrival& arrival);
  asio::awaitable<Answer> check_route(Arrival& arrival);
  asio::awaitable<Answer> check_scope(Arrival& arrival);
  asio::awaitable<Answer> find_workspace(Arrival& arrival);
  asio::awaitable<Answer> wake_workspace(Arrival& arrival);
  asio::awaitable<Answer> check_ended(Arrival& arrival);
  asio::awaitable<Answer> check_takeover(Arrival& arrival);

  // The workspace whose port the request is for, if a policy opens that port to requests without a credential. A credential that
  // the request names is judged instead, wherever it goes.
  [[nodiscard]] asio::awaitable<std::optional<std::string>> publisher(const Arrival& arrival);
  // Requests without a credential need one of our names. A page of another site can have a name of its own that leads to this
  // server (DNS rebinding), and its scripts would read the answer.
  [[nodiscard]] bool is_called_by_own_name(const http::Request& head) const;
  [[nodiscard]] std::function<bool()> permission(const Arrival& arrival);
  [[nodiscard]] bool is_probe(const http::Request& head) const;
  [[nodiscard]] std::unique_ptr<http::Exchange> proxied(Arrival arrival);
  // What a principal has opened may go on.
  [[nodiscard]] bool is_good(const auth::Principal& principal);
  [[nodiscard]] bool drops_authorization(const Arrival& arrival);
  [[nodiscard]] http::Pairs cors_headers(const http::Request& head) const;
  [[nodiscard]] http::Response preflight(const http::Request& head) const;

  Services& services_;
  auth::Gate gate_;
  auth::OriginRule origins_;
  proxy::PreviewHosts preview_hosts_;
  http::Rates rates_;
  Router router_;
  std::size_t keys_awaited_ = 0;
};

}  // namespace caisson::routes
