// /v1/tokens: credentials that a client makes from its own, narrower and with an end.
#include <ctime>

#include "agent/auth/gate.h"
#include "agent/routes/auth_types.h"
#include "agent/routes/refuse.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

using auth::Gate;
using auth::MintedTokens;
using auth::Principal;

std::string utc(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

http::Response wrong_field(const char* name, const std::string& what) {
  Issues issues;
  issues.add(json::Value::array({"body", name}), "value_error", what);
  return validation_response(issues);
}

// No credential that was handed on makes others: revoking it ends all that came of it.
bool may_mint(const Principal& principal) { return !principal.handed_on && principal.kind != auth::Kind::ticket; }

http::Response may_not_mint() {
  return http::error_response(403, "Forbidden: this credential was handed on and makes no tokens");
}

// The bounds of the minter with those of the request. A refusal instead, if these are not within the former.
std::expected<auth::Bounds, http::Response> bounds_of(const Call& call, const TokenRequest& body) {
  auth::Bounds bounds = call.principal.bounds;
  if (body.workspace) bounds.workspace = body.workspace;
  if (body.terminal) bounds.terminal = body.terminal;
  // Another workspace may have a session of the same id.
  if (bounds.terminal && !bounds.workspace) bounds.workspace = "default";
  if (body.port) bounds.port = static_cast<std::uint16_t>(*body.port);
  if (body.path) {
    auto path = auth::PathPrefix::parse(*body.path);
    if (!path) return std::unexpected(wrong_field("path", path.error().what));
    bounds.path = std::move(*path);
  }
  if (body.scopes) {
    auto scopes = auth::Scopes::parse(*body.scopes, call.services.gate->areas());
    if (!scopes) return std::unexpected(wrong_field("scopes", scopes.error().what));
    bounds.scopes = std::move(*scopes);
  }
  const auth::Bounds& own = call.principal.bounds;
  if (own.workspace && bounds.workspace != own.workspace)
    return std::unexpected(http::error_response(404, "Workspace not found"));
  if (!bounds.within(own)) return std::unexpected(http::error_response(403, "Forbidden: a token may do no more than its minter"));
  return bounds;
}

http::Response refused(const Error& error) {
  const int status = error.code == Code::limit ? 429 : error.code == Code::not_found ? 404 : 409;
  return http::error_response(status, error.what);
}

task<http::Response> mint(Call call, TokenRequest body) {
  if (!may_mint(call.principal)) co_return may_not_mint();
  if (auto refusal = refuse_powerless(call.principal)) co_return std::move(*refusal);
  auto bounds = bounds_of(call, body);
  if (!bounds) co_return std::move(bounds).error();
  Gate& gate = *call.services.gate;
  const Gate::Now now = Gate::Now::read();
  const std::int64_t own_end = call.principal.ends;
  std::int64_t ends = now.seconds + body.seconds;
  if (own_end != 0) ends = std::min(ends, own_end);
  const auto token = gate.mint(call.principal, std::move(body.label), std::move(*bounds), ends, now);
  if (!token) co_return refused(token.error());
  const MintedToken made{.token = gate.minted.secret_of(**token), .id = (*token)->id, .expires_at = utc((*token)->ends)};
  co_return http::ok(encode(made), "Token made");
}

TokenInfo told(const MintedTokens::Token& token) {
  TokenInfo out{.id = token.id, .label = token.label, .expires_at = utc(token.ends), .workspace = token.bounds.workspace};
  if (token.bounds.path) out.path = token.bounds.path->text();
  if (token.bounds.port) out.port = *token.bounds.port;
  out.terminal = token.bounds.terminal;
  out.scopes = token.bounds.scopes.names();
  return out;
}

task<http::Response> list_tokens(Call call) {
  if (!may_mint(call.principal)) co_return may_not_mint();
  TokenList out;
  for (const MintedTokens::Token* token : call.services.gate->minted.seen_by(call.principal, Gate::Now::read().seconds))
    out.tokens.push_back(told(*token));
  co_return http::ok(encode(out));
}

task<http::Response> revoke(Call call) {
  if (!may_mint(call.principal)) co_return may_not_mint();
  const bool done = call.services.gate->minted.revoke(call.principal, call.request.param("id"), Gate::Now::read().seconds);
  if (!done) co_return http::error_response(404, "Token not found");
  co_return http::ok(nullptr, "Token revoked");
}

using http::Method;
constexpr std::size_t kTokenBody = 64 * 1024;

constexpr Route kTokens[] = {
    {Method::post, "/v1/tokens", "create_token", Scope::auth, kConflict, Unknown::reject,
     "Make a token for a workspace, a port or a page, or get it again by its label", bind<mint, MintedToken>(), kTokenBody},
    {Method::get, "/v1/tokens", "list_tokens", Scope::auth, kNone, Unknown::ignore, "List the tokens that were made",
     bind<list_tokens, TokenList>()},
    {Method::del, "/v1/tokens/{id}", "revoke_token", Scope::auth, kNone, Unknown::ignore,
     "End a token, and the tickets and logins that came of it", bind<revoke>()},
};

}  // namespace

Area token_routes() { return kTokens; }

}  // namespace caisson::routes
