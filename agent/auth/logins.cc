#include "agent/auth/logins.h"

#include <algorithm>

#include "agent/auth/shares.h"
#include "agent/http/token.h"

namespace caisson::auth {
namespace {

constexpr std::string_view kCookie = "caisson_page_", kOurs = "caisson_page", kHostPrefix = "__Host-";
constexpr std::size_t kMaxCookies = 100;

// The pairs "name=value" of a Cookie header.
std::vector<std::string_view> cookie_pairs(std::string_view header) {
  std::vector<std::string_view> out;
  while (!header.empty() && out.size() < kMaxCookies) {
    const std::size_t end = std::min(header.find(';'), header.size());
    if (const std::string_view pair = http::trim(header.substr(0, end)); !pair.empty()) out.push_back(pair);
    header.remove_prefix(std::min(end + 1, header.size()));
  }
  return out;
}

}  // namespace

Logins::Logins() : maker_("cl_"), name_(std::string(kCookie) + base64url_encode(random_bytes(6))) {}

std::string Logins::open(const http::Request& request, Principal owner, PathPrefix path, std::string host,
                         Clock::time_point now) {
  for (const auto& [id, prefixed] : cookies_of(request))
    if (Login* login = find_id(id, now); login != nullptr && login->path == path && login->host == host &&
                                         login->owner.root == owner.root && login->owner.bounds == owner.bounds &&
                                         login->owner.subject == owner.subject && login->owner.handed_on == owner.handed_on &&
                                         !login->owner.is_over() && (!owner.login || login->owner.login->is_below(owner.login))) {
      // The browser has both credentials, so the later end is its own.
      login->owner.ends = login->owner.ends == 0 || owner.ends == 0 ? 0 : std::max(login->owner.ends, owner.ends);
      return maker_.secret_of(id);
    }
  std::erase_if(logins_, [&](const auto& item) { return now - item.second.used > kIdle || now - item.second.began > kLongest; });
  make_room(
      logins_, owner, kShare, kMaxLogins, [](const auto& item) -> const Principal& { return item.second.owner; },
      [](const auto& item) { return item.second.used; });
  owner.kind = Kind::page;
  owner.login = Life::below(std::move(owner.login));
  std::string id = SecretMaker::new_id();
  std::string value = maker_.secret_of(id);
  logins_.emplace(std::move(id), Login{std::move(owner), std::move(path), std::move(host), now, now});
  return value;
}

std::vector<Logins::Cookie> Logins::cookies_of(const http::Request& request) const {
  std::vector<Cookie> out;
  for (const auto& [name, value] : request.headers) {
    if (name != "cookie") continue;
    for (std::string_view pair : cookie_pairs(value)) {
      const bool prefixed = pair.starts_with(kHostPrefix);
      if (prefixed) pair.remove_prefix(kHostPrefix.size());
      if (!pair.starts_with(name_) || pair.substr(name_.size(), 1) != "=") continue;
      if (auto id = maker_.id_of(pair.substr(name_.size() + 1))) out.push_back({std::move(*id), prefixed});
    }
  }
  return out;
}

Logins::Login* Logins::find_id(const std::string& id, Clock::time_point now) {
  const auto at = logins_.find(id);
  if (at == logins_.end()) return nullptr;
  if (now - at->second.used > kIdle || now - at->second.began > kLongest) {
    logins_.erase(at);
    return nullptr;
  }
  return &at->second;
}

const Logins::Login* Logins::find(const http::Request& request, bool ours, Clock::time_point now) {
  for (const Cookie& cookie : cookies_of(request)) {
    Login* login = find_id(cookie.id, now);
    if (login == nullptr || is_ours(*login) != ours || !login->path.holds(request.segments)) continue;
    if (!counts(request, cookie, *login)) continue;
    if (!login->host.empty() && request.header("host") != login->host) continue;
    login->used = now;
    return login;
  }
  return nullptr;
}

std::optional<std::string> Logins::our_id(const http::Request& request, Clock::time_point now) {
  for (Cookie& cookie : cookies_of(request))
    if (const Login* login = find_id(cookie.id, now); login != nullptr && is_ours(*login) && counts(request, cookie, *login))
      return std::move(cookie.id);
  return std::nullopt;
}

std::string Logins::page_token(const http::Request& request, Clock::time_point now) {
  const auto id = our_id(request, now);
  return id ? maker_.companion_of(*id) : "";
}

const Logins::Login* Logins::of_page(const http::Request& request, std::string_view token, Clock::time_point now) {
  for (const Cookie& cookie : cookies_of(request)) {
    Login* login = find_id(cookie.id, now);
    if (login == nullptr || !is_ours(*login) || !counts(request, cookie, *login)) continue;
    if (!same_secret(token, maker_.companion_of(cookie.id))) continue;
    login->used = now;
    return login;
  }
  return nullptr;
}

std::string Logins::token_of(std::string_view cookie) const {
  const auto id = maker_.id_of(cookie);
  return id ? maker_.companion_of(*id) : "";
}

void Logins::close(const http::Request& request) {
  for (const Cookie& cookie : cookies_of(request))
    if (const auto at = logins_.find(cookie.id); at != logins_.end()) at->second.owner.login->end();
}

void Logins::drop_over() {
  std::erase_if(logins_, [](const auto& item) { return item.second.owner.is_over(); });
}

// Strict: no request that another site causes has it. Its path narrows what a browser sends; the server checks the path itself.
std::string Logins::set_cookie(const PathPrefix& path, const std::string& value, bool secure) const {
  const auto seconds = value.empty() ? std::chrono::seconds(0) : std::chrono::duration_cast<std::chrono::seconds>(kLongest);
  return std::string(secure && path.is_root() ? kHostPrefix : "") + name_ + "=" + value + "; Path=" + path.text() +
         "; Max-Age=" + std::to_string(seconds.count()) + "; HttpOnly; SameSite=Strict" + (secure ? "; Secure" : "");
}

std::string without_our_cookies(std::string_view cookies) {
  std::string out;
  const auto is_ours = [](std::string_view pair) {
    return pair.starts_with(kOurs) || (pair.starts_with(kHostPrefix) && pair.substr(kHostPrefix.size()).starts_with(kOurs));
  };
  for (const std::string_view pair : cookie_pairs(cookies))
    if (!is_ours(pair)) out.append(out.empty() ? "" : "; ").append(pair);
  return out;
}

}  // namespace caisson::auth
