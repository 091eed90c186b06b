// Principal: on whose behalf a request comes, and the bounds of what it may do. A credential that is derived from another one (a
// ticket, a cookie, a minted token) has the bounds of its origin or narrower ones. Pure values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/auth/life.h"
#include "agent/http/request.h"
#include "launcher/common/base/result.h"

namespace caisson::auth {

enum class Access { read, all };  // read: GET and HEAD, no WebSocket

// Areas of the API with an access to each: "file", "file:read", "*" (every area), "*:read".
class Scopes {
 public:
  [[nodiscard]] static Scopes everything();
  // At most kMaxScopes. Code::invalid_argument: a name that is not among the areas.
  [[nodiscard]] static Result<Scopes> parse(std::span<const std::string> names, std::span<const std::string_view> areas);
  // The scope claim of a token (RFC 8693, 4.2). Names of other systems are ignored; they grant nothing.
  [[nodiscard]] static Scopes of_claim(std::string_view claim, std::span<const std::string_view> areas);

  [[nodiscard]] bool permits(std::string_view area, Access access) const;
  [[nodiscard]] bool within(const Scopes& other) const;
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool empty() const { return areas_.empty(); }
  bool operator==(const Scopes&) const = default;

  static constexpr std::size_t kMaxScopes = 64;

 private:
  [[nodiscard]] bool add(std::string_view name, std::span<const std::string_view> areas);
  std::map<std::string, Access, std::less<>> areas_;
};

// An absolute path of requests, and everything below it. "/" is every path.
class PathPrefix {
 public:
  // Code::invalid_argument: not a path as http/target.h takes it, or with a query.
  [[nodiscard]] static Result<PathPrefix> parse(std::string_view text);
  [[nodiscard]] bool holds(const std::vector<std::string>& segments) const;
  [[nodiscard]] bool within(const PathPrefix& other) const { return other.holds(segments_); }
  [[nodiscard]] bool is_root() const { return segments_.empty(); }
  [[nodiscard]] const std::string& text() const { return text_; }
  bool operator==(const PathPrefix& other) const { return segments_ == other.segments_; }

 private:
  std::string text_ = "/";
  std::vector<std::string> segments_;  // without the empty one of a trailing slash
};

struct Bounds {
  Scopes scopes = Scopes::everything();
  std::optional<std::string> workspace = {};  // of this one alone
  std::optional<std::uint16_t> port = {};     // of previews: this one alone
  std::optional<PathPrefix> path = {};
  std::optional<std::string> terminal = {};  // watching that of this shell session alone; needs a workspace
  std::optional<std::string> session = {};   // of terminals: that of this shell session alone

  [[nodiscard]] bool within(const Bounds& other) const;
  bool operator==(const Bounds&) const = default;
};

// published: none; for a port that a policy opens to everybody. session: of a program in a session (session_tokens.h).
enum class Kind { key, jwt, minted, ticket, page, peer, published, session, open };
[[nodiscard]] std::string_view kind_name(Kind kind);

struct Principal {
  Kind kind = Kind::open;
  std::string name = {};  // for logs: never a secret
  Bounds bounds = {};
  // The credential of the operator's from which it comes. What is derived ends with it (Gate::is_rooted).
  std::string root = {};
  std::int64_t ends = 0;  // seconds since 1970; 0: it has no end
  // Whose share of the tables it uses (auth/shares.h), and whose tokens it sees: the user (iss and sub) of a signing key, the
  // minter of a token. Empty: the root stands for one holder alone.
  std::string subject = {};
  bool handed_on = false;  // it comes of a ticket or a minted token, which may be in other hands: it makes no tokens
  // Of the workspace that it is bound to, and of the login from which it comes. None: the operator's own credentials.
  LifePtr workspace = {}, login = {};

  [[nodiscard]] bool is_over() const { return (workspace && workspace->over()) || (login && login->over()); }
  [[nodiscard]] const std::string& holder() const { return subject.empty() ? root : subject; }
};

}  // namespace caisson::auth
