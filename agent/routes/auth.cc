// Tickets, the question of a proxy in front of us whether a request may pass, and the logins of pages.
#include "agent/auth/gate.h"
#include "agent/auth/unauthorized.h"
#include "agent/http/target.h"
#include "agent/routes/auth_types.h"
#include "agent/routes/page_sockets.h"
#include "agent/routes/refuse.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

using auth::Door;
using auth::Gate;
using auth::Kind;
using auth::PathPrefix;
using auth::Principal;

constexpr std::size_t kSmallBody = 64 * 1024;

http::Response invalid_field(const char* name, const std::string& what) {
  Issues issues;
  issues.add(json::Value::array({"body", name}), "value_error", what);
  return validation_response(issues);
}

http::Response exceeds(const char* name) {
  return http::error_response(403, std::string("Forbidden: '") + name + "' is more than the credential of this request permits");
}

// A ticket must not beget tickets: it would have no end.
std::optional<http::Response> refuse_ticket(const Principal& principal) {
  if (principal.kind != Kind::ticket) return std::nullopt;
  return http::error_response(403, "Forbidden: a ticket is no credential for this");
}

// A key of one workspace answers as if there were no other.
http::Response no_such_workspace() { return http::error_response(404, "Workspace not found"); }

task<http::Response> create_ticket(Call call, TicketRequest body) {
  if (auto refusal = refuse_ticket(call.principal)) co_return std::move(*refusal);
  if (auto refusal = refuse_powerless(call.principal)) co_return std::move(*refusal);
  Principal owner = call.principal;
  if (body.path) {
    auto path = PathPrefix::parse(*body.path);
    if (!path) co_return invalid_field("path", path.error().what);
    const bool within = !owner.bounds.path || path->within(*owner.bounds.path);
    if (!within && !is_socket_of_its_page(call.principal, *path)) co_return exceeds("path");
    owner.bounds.path = std::move(*path);
  }
  if (body.port && owner.bounds.port && *body.port != *owner.bounds.port) co_return exceeds("port");
  if (body.port) owner.bounds.port = static_cast<std::uint16_t>(*body.port);
  std::optional<std::string> workspace = std::move(body.workspace);
  if (const auto named = call.request.header(kWorkspaceHeader); named && !workspace) workspace = *named;
  if (workspace && owner.bounds.workspace && workspace != owner.bounds.workspace) co_return no_such_workspace();
  if (workspace) owner.bounds.workspace = std::move(workspace);
  Gate& gate = *call.services.gate;
  const TicketGrant grant{.ticket = gate.issue_ticket(std::move(owner), body.single_use.value_or(false), Gate::Now::read()),
                          .expires_in = gate.tickets.life().count()};
  http::Response response = http::json_response(200, encode(grant));
  co_return response;
}

// The request that a proxy asks about (ngx_http_auth_request_module): its address is in X-Original-URI, its headers are ours.
Result<http::Request> original_of(const http::Request& asked) {
  http::Request original;
  original.headers = asked.headers;
  original.remote = asked.remote;
  for (const std::string_view name : {"x-original-method", "x-original-uri"})
    if (asked.count_of(name) > 1) return fail(Code::invalid_argument, "it, or X-Original-Method, is given more than once");
  original.method = http::method_from(asked.header("x-original-method").value_or("GET"));
  TRY_ASSIGN(http::Target target, http::decode_target(asked.header("x-original-uri").value_or("/auth")));
  original.path = std::move(target.path);
  original.segments = std::move(target.segments);
  original.query = std::move(target.query);
  return original;
}

// Which operation it is, only the proxy knows: a credential for some of them alone does not pass.
bool may_pass(const Principal& principal, const http::Request& original) {
  const auth::Bounds& bounds = principal.bounds;
  if (bounds.port || bounds.terminal || (bounds.path && !bounds.path->holds(original.segments))) return false;
  if (bounds.workspace && original.header(kWorkspaceHeader) != *bounds.workspace) return false;
  // Without its method it may be anything. Tickets open pages then, as their documented addresses need it.
  const bool reads =
      original.header("x-original-method") && (original.method == http::Method::get || original.method == http::Method::head);
  return bounds.scopes.permits("*", reads ? auth::Access::read : auth::Access::all);
}

task<http::Response> authenticate(Call call) {
  Gate& gate = *call.services.gate;
  const auto original = original_of(call.request);
  if (!original) co_return http::error_response(400, "Bad Request: X-Original-URI: " + original.error().what);
  const Gate::Identified found = gate.identify(*original, Door::inside, false, Gate::Now::read());
  if (!found) co_return co_await refuse(gate, auth::sender_of(call.request), found.error());
  // The question is about the proxy's client, for whom the trust in the proxy says nothing.
  if (found->kind == Kind::peer) co_return co_await refuse(gate, auth::sender_of(call.request), Gate::Refusal::absent);
  if (!may_pass(*found, *original)) co_return http::error_response(403, "Forbidden: the credential does not permit this address");
  json::Value told = {{"status", "ok"}, {"kind", auth::kind_name(found->kind)}, {"name", found->name}};
  if (found->bounds.workspace) told["workspace"] = *found->bounds.workspace;
  co_return http::json_response(200, std::move(told));
}

Gate::Identified owner_of(Gate& gate, const http::Request& request, const PageLogin& body, Gate::Now now) {
  if (gate.off()) return Principal{.kind = Kind::open, .name = "anybody"};
  if (body.key) return gate.by_secret(auth::sender_of(request), *body.key, now);
  if (body.login) return gate.by_login_ticket(request, *body.login, now);
  return std::unexpected(Gate::Refusal::absent);
}

// The answer's token goes to a script of our own origin that has the key already.
task<http::Response> log_in(Call call, PageLogin body) {
  Gate& gate = *call.services.gate;
  const Gate::Now now = Gate::Now::read();
  Gate::Identified owner = owner_of(gate, call.request, body, now);
  if (!owner) co_return co_await refuse(gate, auth::sender_of(call.request), owner.error());
  if (auto refusal = refuse_powerless(*owner)) co_return std::move(*refusal);
  PageLoginResult result{.name = owner->name};
  const std::string value = gate.open_login(call.request, std::move(*owner), {}, "", now);
  result.token = gate.logins.token_of(value);
  http::Response response = http::ok(encode(result), "Logged in");
  response.headers = {{"set-cookie", gate.logins.set_cookie({}, value, is_secure(call.request))}};
  co_return response;
}

task<http::Response> log_out(Call call) {
  Gate& gate = *call.services.gate;
  gate.log_out(call.request);
  http::Response response = http::ok(nullptr, "Logged out");
  response.headers = {{"set-cookie", gate.logins.set_cookie({}, "", is_secure(call.request))}};
  co_return response;
}

using http::Method;

constexpr Route kAuth[] = {
    {Method::post, "/tickets", "create_ticket_tickets_post", Scope::auth, kFlat, Unknown::ignore,
     "Make a short-lived ticket, which stands for the key in an address", bind<create_ticket, TicketGrant>(), kSmallBody},
    {Method::get, "/auth", "authenticate_request_auth_get", Scope::auth, kFlat | kOwnCheck, Unknown::ignore,
     "For a proxy in front: whether the request whose address X-Original-URI has may pass",
     bind<authenticate, std::map<std::string, std::string>>()},
    {Method::post, "/v1/page/login", "page_login", Scope::auth, kHidden | kOwnCheck, Unknown::reject,
     "Exchange a key for the cookie and the token of our own pages", bind<log_in, PageLoginResult>(), kSmallBody},
    {Method::post, "/v1/page/logout", "page_logout", Scope::auth, kHidden, Unknown::ignore, "End the login of this page",
     bind<log_out>()},
};

}  // namespace

Area auth_routes() { return kAuth; }

}  // namespace caisson::routes
