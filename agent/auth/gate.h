// Gate: decides on whose behalf a request comes. It knows every kind of credential, and keeps what it hands out: tickets, logins
// and minted tokens. All of that ends with the process.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/auth/api_keys.h"
#include "agent/auth/failures.h"
#include "agent/auth/jwt.h"
#include "agent/auth/logins.h"
#include "agent/auth/minted.h"
#include "agent/auth/principal.h"
#include "agent/auth/session_tokens.h"
#include "agent/auth/tickets.h"
#include "agent/http/network.h"
#include "agent/http/request.h"
#include "agent/http/watched_file.h"

namespace caisson::auth {

struct GateSettings {
  std::string api_key;                   // SANDBOX_API_KEY; ignored when off
  bool off = false;                      // CAISSON_AUTH=none
  std::string keys_file;                 // CAISSON_API_KEYS_FILE
  std::chrono::seconds ticket_life{30};  // TICKET_TTL_SECONDS
  JwtSettings jwt = {};
  http::Networks peers = {};  // CAISSON_TRUSTED_PEERS
};

// What the route of a request is to its credentials.
enum class Door {
  api,     // an operation
  page,    // one of our pages, which answers without a credential
  inside,  // what lies behind a page's address: a preview, a program with a page of its own
};

class Gate {
 public:
  // Of steady time for what is handed out, of wall time for what names a date.
  struct Now {
    std::chrono::steady_clock::time_point steady;
    std::int64_t seconds;  // since 1970
    [[nodiscard]] static Now read();
  };
  enum class Refusal { absent, wrong, limited };  // limited: not looked at, after too many wrong ones of this address
  using Identified = std::expected<Principal, Refusal>;

  Gate(GateSettings settings, std::vector<std::string_view> areas);

  // Before identify(): waits, for some seconds at most, if the request's token names a key that may be in a newer key set.
  [[nodiscard]] asio::awaitable<void> await_key(const http::Request& request, Now now);
  // The set of CAISSON_JWKS_URL, or the reason for its absence.
  void take_keys(Result<std::string> set) { jwt_.take(std::move(set), Now::read().steady); }

  [[nodiscard]] Identified identify(const http::Request& request, Door door, bool websocket, Now now);
  // Of a key or a token itself, as a page's form sends it.
  [[nodiscard]] Identified by_secret(const std::string& sender, std::string_view secret, Now now);
  // A derived credential is good for as long as the one it comes from.
  [[nodiscard]] bool is_rooted(const Principal& principal, Now now) const;

  // Whether the request is a navigation to a document that a script of another document cannot read (Fetch metadata, which no
  // script can set). Only such an answer may hold the page token.
  [[nodiscard]] static bool opens_document(const http::Request& request);
  [[nodiscard]] std::string page_token(const http::Request& request, Now now);

  [[nodiscard]] bool off() const { return settings_.off; }
  // By the address of the connection itself, which no header changes.
  // What a proxy among them says of its client must be one, too.
  [[nodiscard]] bool is_peer(const http::Request& request) const {
    return settings_.peers.contains(request.connected_from) && settings_.peers.contains(request.remote);
  }
  [[nodiscard]] const std::vector<std::string_view>& areas() const { return areas_; }
  // Of the cookie of our own pages, for an address behind a page's that the user typed or had kept, and that has no cookie of its
  // own. A link does not do: pages of previews have links as well.
  [[nodiscard]] Identified by_login(const http::Request& request, Now now);
  // Of what lies behind a page's address.
  [[nodiscard]] bool has_cookie(const http::Request& request, Now now) {
    const std::optional<Identified> found = by_cookie(request, Door::inside, now);
    return found && *found;
  }
  // Of the request's own key, token or ticket, whatever cookies it has.
  [[nodiscard]] Identified by_named(const http::Request& request, Door door, bool websocket, Now now);
  // Whether a value that a client sends to a program in a session is a secret of ours. Another's guesses in that place are
  // counted for `sender`, and after too many everything is taken for ours.
  [[nodiscard]] bool may_be_ours(const std::string& sender, std::string_view value, Now now);
  // Credentials that end with the workspace that they are bound to. A login that came of a ticket may ask for tickets, which
  // inherit the first ticket's end, so such a chain ends.
  [[nodiscard]] std::string issue_ticket(Principal owner, bool single_use, Now now);
  [[nodiscard]] std::string open_login(const http::Request& request, Principal owner, PathPrefix path, std::string host, Now now);
  [[nodiscard]] Result<const MintedTokens::Token*> mint(const Principal& minter, std::string label, Bounds bounds,
                                                        std::int64_t ends, Now now);
  // For programs of that domain in that workspace.
  [[nodiscard]] std::string session_token(const std::string& workspace, const std::string& domain);
  // Of a request that came out of a workspace's network. No other credential counts there: what a session knows of the operator's
  // keys opens nothing from within.
  [[nodiscard]] Identified by_session_token(const http::Request& request, Now now);
  void workspace_ended(std::string_view name);
  // The page of the request and all that it opened.
  void log_out(const http::Request& request);
  // Good for one login of a page, soon.
  [[nodiscard]] std::string login_ticket(Principal owner, Now now);
  [[nodiscard]] Identified by_login_ticket(const http::Request& request, std::string_view ticket, Now now);

  // The areas that the policy of a domain opens to its sessions now.
  std::function<std::vector<std::string>(const std::string& domain)> session_areas = [](const std::string&) {
    return std::vector<std::string>();
  };
  Tickets tickets;
  Logins logins;
  MintedTokens minted;
  Failures failures;

 private:
  void refresh(Now now);
  void drop_over();
  [[nodiscard]] LifePtr life_of_workspace(const Principal& owner, const Bounds& bounds);
  [[nodiscard]] bool is_root(std::string_view root, Now now) const;
  [[nodiscard]] std::optional<Principal> known_owner_of(std::string_view secret, std::string_view digest, Now now) const;
  [[nodiscard]] std::optional<Identified> by_cookie(const http::Request& request, Door door, Now now);
  [[nodiscard]] Identified checked(std::optional<Principal> principal, Now now) const;

  GateSettings settings_;
  std::vector<std::string_view> areas_;
  WorkspaceLives lives_;
  SessionTokens session_tokens_;
  Tickets login_tickets_{std::chrono::seconds(30)};
  ApiKeys keys_;
  http::WatchedFile keys_file_;
  JwtVerifier jwt_;
  std::set<std::string> good_;     // digests of secrets that were right
  std::set<std::string> foreign_;  // digests of what programs in sessions take, and is no secret of ours
};

// Another site made a browser send it.
[[nodiscard]] bool is_of_other_site(const http::Request& request);
// The name under which wrong credentials are counted. Any page can make the browsers behind an address send wrong keys, which
// must not lock out other clients there. These keys are counted apart rather than ignored, because the client itself sets the
// header that marks them.
[[nodiscard]] std::string sender_of(const http::Request& request);
// The request carries a credential in a header or in its address.
[[nodiscard]] bool names_credential(const http::Request& request);

}  // namespace caisson::auth
