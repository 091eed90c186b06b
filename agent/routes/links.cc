#include "agent/routes/links.h"

#include "agent/auth/gate.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {

std::string origin_of(const http::Request& request, bool socket) {
  const bool secure = request.scheme == "https";
  return (socket ? secure ? "wss://" : "ws://" : secure ? "https://" : "http://") + request.host;
}

std::string ticket_for(const Call& call, std::string_view path, auth::Scopes scopes) {
  using auth::Kind;
  auth::Gate& gate = *call.services.gate;
  const Kind kind = call.principal.kind;
  if (gate.off() || kind == Kind::ticket || kind == Kind::peer || kind == Kind::open || kind == Kind::published) return "";
  auth::Principal owner = call.principal;
  if (auto bound = auth::PathPrefix::parse(path)) owner.bounds.path = std::move(*bound);
  owner.bounds.workspace = call.services.workspace->name;
  if (scopes.within(owner.bounds.scopes)) owner.bounds.scopes = std::move(scopes);
  return gate.issue_ticket(std::move(owner), false, auth::Gate::Now::read());
}

}  // namespace caisson::routes
