// Logins: what a cookie stands for. A cookie of the path "/" belongs to our own pages: for a request to the API it counts only
// together with the page token, which our own documents know. Pages of previews have our origin, so their scripts send the cookie
// as well, but they cannot read our documents. A cookie of another path opens what lies below it, and nothing of the API.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/auth/principal.h"
#include "agent/auth/secret.h"

namespace caisson::auth {

class Logins {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxLogins = 1024, kShare = 256;  // kShare: of one root
  static constexpr std::chrono::hours kIdle{2}, kLongest{12};

  Logins();

  struct Login {
    Principal owner;
    PathPrefix path;
    std::string host;  // of a preview with a name of its own; "": any
    Clock::time_point began, used;
  };
  // The value of a cookie. The request's own login goes on if it is the same, because other tabs have its page token. At
  // its share, or with kMaxLogins alive, the least recently used one of those with most ends.
  [[nodiscard]] std::string open(const http::Request& request, Principal owner, PathPrefix path, std::string host,
                                 Clock::time_point now);
  // The login of a cookie of a request; a browser sends several if paths overlap. ours: the login of path "/" and no host, which
  // belongs to our own pages; otherwise one whose path and host hold the request's.
  [[nodiscard]] const Login* find(const http::Request& request, bool ours, Clock::time_point now);
  [[nodiscard]] std::string page_token(const http::Request& request, Clock::time_point now);  // "": no login
  // The login of our own pages whose page token this is, wherever its cookie stands: a preview, or a page of a neighbouring name,
  // can put cookies of its own in front.
  [[nodiscard]] const Login* of_page(const http::Request& request, std::string_view token, Clock::time_point now);
  [[nodiscard]] std::string token_of(std::string_view cookie) const;  // of a value that open() gave
  // Ends these logins and all that came of them; drop_over() of each table then makes room.
  void close(const http::Request& request);
  void drop_over();

  // The field value of Set-Cookie. value "": the cookie ends. secure: the browser's connection is. The cookie of the path "/"
  // then has the prefix __Host-: no page of a neighbouring name, and none that came over plain HTTP, can put one of its own
  // there.
  [[nodiscard]] std::string set_cookie(const PathPrefix& path, const std::string& value, bool secure) const;

 private:
  struct Cookie {
    std::string id;
    bool prefixed;  // __Host-
  };
  [[nodiscard]] static bool is_ours(const Login& login) { return login.path.is_root() && login.host.empty(); }
  // On a connection that is known to be secure, a cookie without the prefix may be a neighbour's.
  [[nodiscard]] static bool counts(const http::Request& request, const Cookie& cookie, const Login& login) {
    return cookie.prefixed || !login.path.is_root() || request.scheme != "https";
  }
  [[nodiscard]] std::vector<Cookie> cookies_of(const http::Request& request) const;
  [[nodiscard]] Login* find_id(const std::string& id, Clock::time_point now);
  [[nodiscard]] std::optional<std::string> our_id(const http::Request& request, Clock::time_point now);

  SecretMaker maker_;
  std::string name_;  // cookies know no ports: two servers on one host need two names
  std::map<std::string, Login> logins_;
};

// The value of a Cookie header without the cookies of this server, for what is passed on to a program in a session.
[[nodiscard]] std::string without_our_cookies(std::string_view cookies);

}  // namespace caisson::auth
