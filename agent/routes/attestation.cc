// The enforced confinement, signed by the launcher. The agent only passes it on: it has no key, so it cannot change a byte
// undetected.
#include "agent/bridge/launcher_client.h"
#include "agent/routes/session_id.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

task<http::Response> answer(Call call, std::string session) {
  const std::string nonce(call.request.query_value("nonce").value_or(""));
  auto answered = co_await call.services.launcher->attest(std::move(session), nonce);
  if (!answered && answered.error().code == Code::not_found) co_return http::session_not_found();
  CO_TRY_ASSIGN(json::Value attested, std::move(answered));
  json::Value data = {{"token", std::move(attested["token"])},
                      {"key", std::move(attested["key"])},
                      {"statement", std::move(attested["statement"])}};
  co_return http::ok(std::move(data), "Attested");
}

task<http::Response> attestation(Call call) { return answer(std::move(call), ""); }

task<http::Response> confinement(Call call) {
  std::string session = launcher_session(call);
  if (session.empty()) co_return http::session_not_found();
  co_return co_await answer(std::move(call), std::move(session));
}

constexpr Parameter kNonce[] = {{"nonce", "string", "Repeated in the statement, so that it is known to be new"}};

constexpr Route kAttestation[] = {
    {http::Method::get, "/v1/attestation", "get_attestation", Scope::sandbox, kNone, Unknown::ignore,
     "What this container enforces, signed", bind<attestation>(), kDefaultBodyLimit, kNonce},
    {http::Method::get, "/v1/sessions/{session_id}/confinement", "get_session_confinement", Scope::sandbox, kWhole,
     Unknown::ignore, "What confines a bash or shell session, wall by wall, signed", bind<confinement>(), kDefaultBodyLimit,
     kNonce},
};

}  // namespace

Area attestation_routes() { return kAttestation; }

}  // namespace caisson::routes
