#include "agent/auth/gate.h"

#include <algorithm>
#include <ctime>

#include "agent/auth/key.h"
#include "agent/http/log.h"
#include "agent/http/peer.h"

namespace caisson::auth {
namespace {

constexpr std::string_view kPageHeader = "x-caisson-page",
                           kKeyRoot = "key:", kMintedRoot = "minted:", kPeerRoot = "peer:", kSessionRoot = "session:";
constexpr std::size_t kMaxGood = 1024, kMaxForeign = 4096;
// No number of guesses that come over a network finds a key of so many characters, and looking one up costs a digest.
constexpr std::size_t kUnguessable = 20;

// With the areas, so that what has been admitted ends with them.
std::string root_of(const SessionTokens::Token& token, const std::vector<std::string>& areas) {
  std::string root = std::string(kSessionRoot) + token.id;
  for (const std::string& area : areas) root += " " + area;
  return root;
}

std::string_view header_or_none(const http::Request& request, std::string_view name) { return request.header(name).value_or(""); }

}  // namespace

Gate::Now Gate::Now::read() { return {std::chrono::steady_clock::now(), std::time(nullptr)}; }

Gate::Gate(GateSettings settings, std::vector<std::string_view> areas)
    : tickets(settings.ticket_life),
      settings_(std::move(settings)),
      areas_(std::move(areas)),
      keys_(settings_.off ? "" : settings_.api_key, areas_),
      keys_file_(settings_.keys_file, ApiKeys::kMaxFileBytes),
      jwt_(settings_.jwt, areas_) {}

void Gate::refresh(Now now) {
  jwt_.refresh(now.steady);
  if (const auto text = keys_file_.look(now.steady)) {
    foreign_.clear();
    const Status loaded = *text ? keys_.load(**text) : std::unexpected(text->error());
    if (loaded) log::info("API keys were read from " + quote(keys_file_.path()));
    else log::error("CAISSON_API_KEYS_FILE, of which nothing is taken: " + loaded.error().text());
  }
}

asio::awaitable<void> Gate::await_key(const http::Request& request, Now now) {
  refresh(now);
  const auto secret = settings_.off ? std::nullopt : key_of(request);
  if (!secret || failures.is_blocked(sender_of(request), now.steady)) co_return;
  if (jwt_.may_come(*secret, now.steady)) co_await jwt_.arrival();
}

std::optional<Principal> Gate::known_owner_of(std::string_view secret, std::string_view digest, Now now) const {
  if (const ApiKey* key = secret.empty() ? nullptr : keys_.by_digest(digest, now.seconds))
    return Principal{.kind = Kind::key,
                     .name = key->name,
                     .bounds = key->bounds,
                     .root = std::string(kKeyRoot) + key->digest,
                     .ends = key->not_after};
  if (const MintedTokens::Token* token = minted.by_secret(secret, now.seconds))
    return Principal{.kind = Kind::minted,
                     .name = "token:" + token->label,
                     .bounds = token->bounds,
                     .root = std::string(kMintedRoot) + token->id,
                     .ends = token->ends,
                     .subject = token->minter,
                     .handed_on = true,
                     .workspace = token->workspace};
  return std::nullopt;
}

Gate::Identified Gate::by_secret(const std::string& sender, std::string_view secret, Now now) {
  refresh(now);
  std::string digest = sha256(secret);
  const bool limited = !good_.contains(digest) && failures.is_blocked(sender, now.steady);
  if (limited && secret.size() < kUnguessable) return std::unexpected(Refusal::limited);
  std::optional<Principal> owner = known_owner_of(secret, digest, now);
  if (!owner && limited) return std::unexpected(Refusal::limited);  // verifying a signature costs much
  Identified found = checked(owner ? std::move(owner) : jwt_.verify(secret, now.seconds), now);
  if (!found) return found;
  if (good_.size() >= kMaxGood) good_.clear();
  good_.insert(std::move(digest));
  return found;
}

bool Gate::is_rooted(const Principal& principal, Now now) const {
  if (principal.is_over() || (principal.ends != 0 && now.seconds >= principal.ends)) return false;
  return is_root(principal.root, now);
}

bool Gate::is_root(std::string_view root, Now now) const {
  if (root.empty()) return settings_.off;
  if (root == kPeerRoot) return !settings_.peers.empty();
  if (root.starts_with(kSessionRoot)) {
    const std::string_view id = root.substr(kSessionRoot.size());
    const SessionTokens::Token* token = session_tokens_.by_id(id.substr(0, id.find(' ')));
    return token != nullptr && root == root_of(*token, session_areas(token->domain));
  }
  if (root.starts_with(kKeyRoot)) return keys_.by_digest(root.substr(kKeyRoot.size()), now.seconds) != nullptr;
  if (!root.starts_with(kMintedRoot)) return jwt_.has_root(root);
  const MintedTokens::Token* token = minted.by_id(root.substr(kMintedRoot.size()), now.seconds);
  return token != nullptr && is_root(token->minter_root, now);  // no minted token mints: this ends
}

Gate::Identified Gate::checked(std::optional<Principal> principal, Now now) const {
  if (!principal || !is_rooted(*principal, now)) return std::unexpected(Refusal::wrong);
  return std::move(*principal);
}

bool Gate::opens_document(const http::Request& request) {
  return request.method == http::Method::get && header_or_none(request, "sec-fetch-mode") == "navigate" &&
         header_or_none(request, "sec-fetch-dest") == "document";
}

// nullopt: it has no cookie that counts here.
std::optional<Gate::Identified> Gate::by_cookie(const http::Request& request, Door door, Now now) {
  if (door == Door::inside)
    if (const Logins::Login* login = logins.find(request, false, now.steady)) {
      Principal owner = login->owner;
      owner.bounds.path = login->path;
      return checked(std::move(owner), now);
    }
  if (door == Door::api) {
    const auto given = request.header(kPageHeader);
    if (!given) return std::nullopt;
    const Logins::Login* login = logins.of_page(request, *given, now.steady);
    if (login == nullptr) return std::unexpected(Refusal::wrong);
    return checked(login->owner, now);
  }
  return std::nullopt;
}

Gate::Identified Gate::by_login(const http::Request& request, Now now) {
  refresh(now);
  const bool typed = opens_document(request) && header_or_none(request, "sec-fetch-site") == "none";
  if (!typed || logins.find(request, false, now.steady) != nullptr) return std::unexpected(Refusal::absent);
  const Logins::Login* login = logins.find(request, true, now.steady);
  if (login == nullptr) return std::unexpected(Refusal::absent);
  return checked(login->owner, now);
}

// A credential that is bound to one keeps its own: the name may be that of a later workspace by now.
LifePtr Gate::life_of_workspace(const Principal& owner, const Bounds& bounds) {
  if (owner.workspace) return owner.workspace;
  return bounds.workspace ? lives_.of(*bounds.workspace) : nullptr;
}

std::string Gate::issue_ticket(Principal owner, bool single_use, Now now) {
  const std::int64_t last = now.seconds + std::chrono::seconds(Logins::kLongest).count();
  owner.ends = owner.ends == 0 ? last : std::min(owner.ends, last);
  owner.handed_on = true;
  owner.workspace = life_of_workspace(owner, owner.bounds);
  return tickets.issue(std::move(owner), single_use, now.steady);
}

std::string Gate::open_login(const http::Request& request, Principal owner, PathPrefix path, std::string host, Now now) {
  owner.workspace = life_of_workspace(owner, owner.bounds);
  return logins.open(request, std::move(owner), std::move(path), std::move(host), now.steady);
}

Result<const MintedTokens::Token*> Gate::mint(const Principal& minter, std::string label, Bounds bounds, std::int64_t ends,
                                              Now now) {
  LifePtr workspace = life_of_workspace(minter, bounds);
  if (workspace && workspace->over()) return fail(Code::not_found, "Workspace not found");
  return minted.mint(minter, std::move(label), std::move(bounds), ends, now.seconds, std::move(workspace));
}

std::string Gate::login_ticket(Principal owner, Now now) {
  owner.workspace = life_of_workspace(owner, owner.bounds);
  return login_tickets_.issue(std::move(owner), true, now.steady);
}

std::string Gate::session_token(const std::string& workspace, const std::string& domain) {
  return session_tokens_.secret_for(workspace, domain, lives_.of(workspace));
}

Gate::Identified Gate::by_session_token(const http::Request& request, Now now) {
  const auto secret = key_of(request);
  if (!secret) return std::unexpected(Refusal::absent);
  const SessionTokens::Token* token = session_tokens_.by_secret(*secret);
  if (token == nullptr || token->workspace != request.inside) return std::unexpected(Refusal::wrong);
  const std::vector<std::string> areas = session_areas(token->domain);
  auto scopes = Scopes::parse(areas, areas_);
  if (areas.empty() || !scopes) return std::unexpected(Refusal::wrong);
  return checked(Principal{.kind = Kind::session,
                           .name = "session:" + token->domain,
                           .bounds = {.scopes = std::move(*scopes), .workspace = token->workspace},
                           .root = root_of(*token, areas),
                           .handed_on = true,
                           .workspace = token->life},
                 now);
}

void Gate::workspace_ended(std::string_view name) {
  lives_.end(name);
  drop_over();
}

void Gate::log_out(const http::Request& request) {
  logins.close(request);
  drop_over();
}

void Gate::drop_over() {
  tickets.drop_over();
  login_tickets_.drop_over();
  logins.drop_over();
  minted.drop_over();
  session_tokens_.drop_over();
}

Gate::Identified Gate::by_login_ticket(const http::Request& request, std::string_view ticket, Now now) {
  refresh(now);
  return checked(login_tickets_.redeem(ticket, request.segments, false, now.steady), now);
}

std::string Gate::page_token(const http::Request& request, Now now) {
  refresh(now);
  const Logins::Login* login = opens_document(request) ? logins.find(request, true, now.steady) : nullptr;
  return login != nullptr && is_rooted(login->owner, now) ? logins.page_token(request, now.steady) : "";
}

Gate::Identified Gate::by_named(const http::Request& request, Door door, bool websocket, Now now) {
  refresh(now);
  if (const auto secret = key_of(request)) return by_secret(sender_of(request), *secret, now);
  if (const auto ticket = request.query_value("ticket")) {
    const bool reads = request.method == http::Method::get || request.method == http::Method::head;
    return checked(tickets.redeem(*ticket, request.segments, websocket || (reads && door != Door::api), now.steady), now);
  }
  return std::unexpected(Refusal::absent);
}

bool Gate::may_be_ours(const std::string& sender, std::string_view value, Now now) {
  if (value.empty()) return false;
  std::string digest = sha256(value);
  if (foreign_.contains(digest)) return false;
  const Identified found = by_secret(sender, value, now);
  if (found || found.error() == Refusal::limited) return true;
  (void)failures.record(sender, now.steady);
  if (foreign_.size() >= kMaxForeign) foreign_.clear();
  foreign_.insert(std::move(digest));
  return false;
}

// Behind a page's address the cookie comes first: what else is there may be meant for the program that answers.
Gate::Identified Gate::identify(const http::Request& request, Door door, bool websocket, Now now) {
  refresh(now);
  if (door == Door::inside)
    if (const auto principal = by_cookie(request, door, now); principal && *principal) return *principal;
  if (settings_.off) return Principal{.kind = Kind::open, .name = "anybody"};
  if (key_of(request) || request.query_value("ticket")) return by_named(request, door, websocket, now);
  if (const auto principal = by_cookie(request, door, now)) return *principal;
  if (is_peer(request)) return Principal{.kind = Kind::peer, .name = "peer:" + request.remote, .root = std::string(kPeerRoot)};
  return std::unexpected(Refusal::absent);
}

bool is_of_other_site(const http::Request& request) {
  const std::string_view site = header_or_none(request, "sec-fetch-site");
  return site == "cross-site" || site == "same-site";
}

std::string sender_of(const http::Request& request) {
  return is_of_other_site(request) ? http::network_of(request.remote) + " (by other sites)" : request.remote;
}

bool names_credential(const http::Request& request) {
  return key_of(request) || request.query_value("ticket") || request.header(kPageHeader);
}

}  // namespace caisson::auth
