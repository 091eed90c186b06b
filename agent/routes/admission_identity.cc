// The checks of a request's head that are about its credential: the exchange of one in a page's address for a cookie, whose it
// is, and what it permits.
#include <array>

#include "agent/bridge/openings.h"
#include "agent/http/target.h"
#include "agent/http/token.h"
#include "agent/routes/app.h"
#include "agent/routes/page_sockets.h"
#include "agent/routes/refuse.h"
#include "agent/routes/resource_metadata.h"
#include "agent/services/workspace/workspaces.h"

namespace caisson::routes {
namespace {

using auth::Door;
using auth::Gate;
using auth::PathPrefix;
using auth::Principal;

Door door_of(const Arrival& arrival) {
  if (goes_to_port(arrival)) return Door::inside;
  const Match& match = arrival.match;
  if (match.route == nullptr) return Door::api;
  if ((match.route->flags & kInside) != 0) return Door::inside;
  return (match.route->flags & kPage) != 0 ? Door::page : Door::api;
}

bool is_websocket(const Match& match) { return match.route != nullptr && match.route->endpoint.websocket != nullptr; }

// A browser that opens an address, and not one of its scripts. Browsers without Fetch metadata, and those that reach us by HTTP
// under another name than localhost, are known by what they accept.
bool is_navigation(const http::Request& head) {
  if (head.method != http::Method::get || head.header("upgrade")) return false;
  if (const auto mode = head.header("sec-fetch-mode")) return *mode == "navigate";
  return head.header("accept").value_or("").contains("text/html");
}

// The request's own address without its credential. Browsers take "//" and "/\\" for the begin of another host's.
std::string address_without_credential(const http::Request& head) {
  std::string out;
  for (const char c : head.path) out += c == '\\' ? "%5C" : std::string(1, c);
  if (out.starts_with("//")) out.insert(0, "/.");
  char mark = '?';
  for (const auto& [name, value] : head.query) {
    if (name == "api_key" || name == "ticket") continue;
    out.append({std::exchange(mark, '&')}).append(http::percent_encoded(name)).append("=").append(http::percent_encoded(value));
  }
  return out;
}

// What the cookie of this request's page opens: everything for our own pages; otherwise what its owner is bound to, or what lies
// below the prefix of the port, or below the first segment of the address.
PathPrefix cookie_path(const Arrival& arrival, const Principal& owner) {
  if (door_of(arrival) == Door::page) return {};
  if (owner.bounds.path && !owner.bounds.path->is_root()) return *owner.bounds.path;
  if (goes_to_port(arrival)) return PathPrefix::parse((*arrival.port)->prefix).value_or(PathPrefix());
  return PathPrefix::parse(arrival.head.path.substr(0, arrival.head.path.find('/', 1))).value_or(PathPrefix());
}

// A name of a port has no page of ours: its login is good for that name alone, and may have the path "/".
std::string cookie_host(const Arrival& arrival) {
  const bool has_name = goes_to_port(arrival) && (*arrival.port)->prefix.empty() && !arrival.head.header("x-aio-proxy-port");
  return has_name ? std::string(arrival.head.header("host").value_or("")) : "";
}

// On one origin, pages of two workspaces would reach each other, whatever cookies they have. So a browser gets a cookie only on
// an origin that the workspace does not share with another: the default one on our own, each other one on names of its own.
std::optional<http::Response> check_site(const Arrival& arrival, const std::string& workspace, const std::string& standard) {
  const proxy::Destination& to = **arrival.port;
  if (to.workspace == workspace || (to.workspace.empty() && workspace == standard)) return std::nullopt;
  const std::string port = std::to_string(to.port);
  return http::error_response(403,
                              "A browser opens ports of the workspace " + quote(workspace) + " at the name " + port + "-" +
                                  (workspace == standard ? "" : workspace + ".") +
                                  "DOMAIN, where DOMAIN is localhost or one of CAISSON_PREVIEW_HOSTS: at this address its pages "
                                  "would share an origin with those of other workspaces");
}

// Of a credential that the browser sends by itself, or of none: the request may be another site's doing. Navigations are what
// links do; scripts of the other site cannot read what they open.
bool is_caused_elsewhere(const http::Request& head, auth::Kind kind) {
  using auth::Kind;
  if (kind != Kind::peer && kind != Kind::open && kind != Kind::page && kind != Kind::published) return false;
  if (!auth::is_of_other_site(head)) return false;
  return head.method != http::Method::get || head.header("sec-fetch-mode") != "navigate";
}

http::Response see_other(std::string address, std::string cookie) {
  http::Response response = http::text_response(303, "text/plain", "");
  response.headers = {{"location", std::move(address)}, {"referrer-policy", "no-referrer"}};
  if (!cookie.empty()) response.headers.emplace_back("set-cookie", std::move(cookie));
  return response;
}

// Whether a link on another site would put its own login in the place of the user's, who would not notice.
bool replaces_login(Gate& gate, const http::Request& head, const Principal& owner, Gate::Now now) {
  if (!auth::is_of_other_site(head)) return false;
  const auth::Logins::Login* login = gate.logins.find(head, true, now.steady);
  return login != nullptr && gate.is_rooted(login->owner, now) && login->owner.root != owner.root;
}

// Access to what only one workspace has. A new scope must be put on one side.
bool is_of_workspace(Scope scope) {
  switch (scope) {
    case Scope::sandbox:
    case Scope::bash:
    case Scope::shell:
    case Scope::file:
    case Scope::file_watch:
    case Scope::jupyter:
    case Scope::nodejs:
    case Scope::code:
    case Scope::browser:
    case Scope::proxy:
    case Scope::operator_:
    case Scope::mcp:
    case Scope::util:
    case Scope::skills:
      return true;
    case Scope::system:
    case Scope::workspaces:
    case Scope::audit:
    case Scope::auth:
      return false;
  }
  return false;
}

http::Response not_permitted(std::string_view what) {
  return http::error_response(403, "Forbidden: the credential does not permit " + std::string(what));
}

std::optional<http::Response> check_port_scope(const Arrival& arrival) {
  const auth::Bounds& bounds = arrival.principal.bounds;
  if (bounds.port && *bounds.port != (*arrival.port)->port) return not_permitted("this port");
  if (bounds.path && !bounds.path->holds(arrival.head.segments)) return not_permitted("this path");
  if (bounds.terminal) return not_permitted("anything but watching its terminal");
  if (!bounds.scopes.permits(kPreviewArea, auth::Access::all)) return not_permitted("previews; they need the scope preview");
  return std::nullopt;
}

// The handler reads the id in the same way.
bool watches_its_terminal(const Arrival& arrival) {
  const auto session = arrival.head.query_value("session_id");
  return (arrival.match.route->flags & kWatch) != 0 && session == *arrival.principal.bounds.terminal;
}

bool is_another_session(const Arrival& arrival) {
  const std::optional<std::string>& own = arrival.principal.bounds.session;
  return own && (arrival.match.route->flags & kWatch) != 0 && arrival.head.query_value("session_id") != *own;
}

// The workspace that the request's address and header name. nullopt: they name two.
std::optional<std::string> workspace_asked_for(const http::Request& head, std::string by_name, const std::string& standard) {
  const std::size_t named = head.count_of(kWorkspaceHeader);
  if (named == 0) return by_name.empty() ? standard : std::move(by_name);
  std::string name(*head.header(kWorkspaceHeader));
  if (named > 1 || (!by_name.empty() && by_name != name)) return std::nullopt;
  return name;
}

// Good for nothing but that port. It has no root, so nothing can be derived from it.
Principal published_port(const http::Request& head, std::string workspace, std::uint16_t port, const Gate& gate) {
  const std::string area(kPreviewArea);
  Principal out{.kind = auth::Kind::published, .name = "published:" + head.remote};
  out.bounds.scopes = auth::Scopes::of_claim(area, gate.areas());
  out.bounds.workspace = std::move(workspace);
  out.bounds.port = port;
  return out;
}

// A token of OAuth is never in an address (MCP, "Authorization"): addresses are in logs and histories.
bool is_named_in_query_of_mcp(const http::Request& head) {
  const bool mcp = head.path == "/mcp" || head.path == "/v1/mcp";
  return mcp && (head.query_value("api_key") || head.query_value("ticket")) && !head.header("authorization") &&
         !head.header("x-aio-api-key");
}

http::Response no_such_thing() { return http::error_response(404, "Not Found"); }

}  // namespace

asio::awaitable<App::Answer> App::await_key(Arrival& arrival) {
  if (arrival.match.route != nullptr && is_keyless(*arrival.match.route)) co_return std::nullopt;
  co_await gate_.await_key(arrival.head, Gate::Now::read());
  co_return std::nullopt;
}

// The key leaves the address before a page is shown: neither the history nor a referrer has it.
asio::awaitable<App::Answer> App::exchange_credential(Arrival& arrival) {
  const http::Request& head = arrival.head;
  const Door door = door_of(arrival);
  if (door == Door::api || !is_navigation(head) || gate_.off()) co_return std::nullopt;
  const Gate::Now now = Gate::Now::read();
  const bool named = head.query_value("api_key") || head.query_value("ticket");
  // One who is logged in opens a preview by a link. Its own requests then need the cookie of its path.
  if (!named && door == Door::page) co_return std::nullopt;
  Gate::Identified owner = named ? gate_.by_named(head, door, false, now) : gate_.by_login(head, now);
  if (!named && !owner) co_return std::nullopt;
  if (!owner && door == Door::inside && gate_.has_cookie(head, now)) {
    (void)gate_.failures.record(auth::sender_of(head), now.steady);
    co_return std::nullopt;  // what looked like a credential is the program's own
  }
  if (!owner) co_return co_await refuse(gate_, auth::sender_of(head), owner.error());
  if (auto refusal = refuse_powerless(*owner)) co_return std::move(*refusal);
  if (goes_to_port(arrival) && services_.workspaces != nullptr) {
    const std::string& standard = services_.workspaces->standard()->name;
    if (!owner->bounds.workspace) owner->bounds.workspace = standard;
    if (auto refusal = check_site(arrival, *owner->bounds.workspace, standard)) co_return std::move(*refusal);
  }
  if (door == Door::page && replaces_login(gate_, head, *owner, now)) co_return see_other(address_without_credential(head), "");
  // The address says which terminal it is; the page that comes opens no other.
  const auto session = head.query_value("session_id");
  if (door == Door::page && is_of_terminal_page(owner->bounds) && !owner->bounds.session && session && !session->empty())
    owner->bounds.session = *session;
  const PathPrefix path = cookie_path(arrival, *owner);
  // A cookie of our own pages must not be made for what has a program's scripts, and one of path "/" is ours.
  const std::string host = cookie_host(arrival);
  if (door == Door::inside && path.is_root() && host.empty()) co_return std::nullopt;
  if (goes_to_port(arrival)) owner->bounds.port = (*arrival.port)->port;
  std::string address = address_without_credential(head);
  // Without Fetch metadata the next request could come from a script, and would not get the page token. The fragment, which is
  // sent nowhere, lets the page log in once.
  if (door == Door::page && !head.header("sec-fetch-mode")) address += "#login=" + gate_.login_ticket(*owner, now);
  std::string cookie = gate_.logins.set_cookie(path, gate_.open_login(head, std::move(*owner), path, host, now), is_secure(head));
  co_return see_other(std::move(address), std::move(cookie));
}

bool App::is_called_by_own_name(const http::Request& head) const {
  return preview_hosts_.lists(head.header("host").value_or("")) || origins_.is_own_name(head);
}

asio::awaitable<std::optional<std::string>> App::publisher(const Arrival& arrival) {
  const http::Request& head = arrival.head;
  if (!goes_to_port(arrival) || services_.openings == nullptr || services_.workspaces == nullptr) co_return std::nullopt;
  if (auth::names_credential(head) || !is_called_by_own_name(head)) co_return std::nullopt;
  const std::string& standard = services_.workspaces->standard()->name;
  auto workspace = workspace_asked_for(head, preview_hosts_.workspace_of(head.header("host").value_or("")), standard);
  if (!workspace) co_return std::nullopt;
  const bool open = co_await services_.openings->admits(*workspace, (*arrival.port)->port);
  co_return open ? std::move(workspace) : std::nullopt;
}

asio::awaitable<App::Answer> App::check_identity(Arrival& arrival) {
  if (arrival.match.route != nullptr && is_keyless(*arrival.match.route)) co_return std::nullopt;
  const Gate::Now now = Gate::Now::read();
  Gate::Identified found = !arrival.head.inside.empty()
                               ? gate_.by_session_token(arrival.head, now)
                               : gate_.identify(arrival.head, door_of(arrival), is_websocket(arrival.match), now);
  if (found && is_named_in_query_of_mcp(arrival.head)) found = std::unexpected(Gate::Refusal::absent);
  if (found && found->kind == auth::Kind::peer && !is_called_by_own_name(arrival.head))
    found = std::unexpected(Gate::Refusal::absent);
  if (!found && arrival.head.inside.empty())
    if (auto workspace = co_await publisher(arrival); workspace)
      found = published_port(arrival.head, std::move(*workspace), (*arrival.port)->port, gate_);
  if (found && is_caused_elsewhere(arrival.head, found->kind) && arrival.cors.empty())
    co_return http::error_response(403, "Requests that another site causes need a key");
  if (found) {
    arrival.principal = std::move(*found);
    co_return std::nullopt;
  }
  http::Response refusal = co_await refuse(gate_, auth::sender_of(arrival.head), found.error());
  if (refusal.status == 401) add_challenge(refusal, arrival.head, found.error() == Gate::Refusal::wrong ? "invalid_token" : "");
  refusal.headers.insert(refusal.headers.end(), arrival.cors.begin(), arrival.cors.end());
  co_return refusal;
}

asio::awaitable<App::Answer> App::check_scope(Arrival& arrival) {
  if (goes_to_port(arrival)) co_return check_port_scope(arrival);
  const Route& route = *arrival.match.route;
  if (is_keyless(route)) co_return std::nullopt;
  const http::Request& head = arrival.head;
  const auth::Bounds& bounds = arrival.principal.bounds;
  if (bounds.path && !bounds.path->holds(head.segments) && !is_part_of_its_page(arrival.principal, head.segments))
    co_return not_permitted("this path");
  if (is_another_session(arrival)) co_return not_permitted("another session than that of its terminal");
  if (bounds.port) co_return not_permitted("anything but its port");
  if (route.scope == Scope::auth) co_return std::nullopt;  // tickets, which have the same bounds
  if (bounds.terminal && !watches_its_terminal(arrival)) co_return not_permitted("anything but watching its terminal");
  if (!permits(bounds.scopes, route)) {
    http::Response refusal = not_permitted("this operation; it needs the scope " + std::string(scope_name(route.scope)));
    add_challenge(refusal, head, "insufficient_scope");
    co_return refusal;
  }
  if (!bounds.workspace) co_return std::nullopt;
  if (route.scope == Scope::workspaces) {
    const bool own = head.param("name") == *bounds.workspace || (only_reads(route) && head.param("name").empty());
    co_return own ? Answer() : no_such_thing();
  }
  if (!is_of_workspace(route.scope) || (route.flags & kWhole) != 0) co_return no_such_thing();
  co_return std::nullopt;
}

}  // namespace caisson::routes
