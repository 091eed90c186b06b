#include "agent/auth/jwt.h"

#include <algorithm>

#include "agent/auth/jws.h"
#include "agent/auth/secret.h"
#include "agent/http/log.h"

namespace caisson::auth {
namespace {

constexpr std::string_view kJwtRoot = "jwt:";

}  // namespace

Result<VerifyKey> key_of_variable(std::string_view base64) {
  std::string text;
  for (const char c : base64)
    if (c != '\n' && c != '\r' && c != ' ') text += c == '+' ? '-' : c == '/' ? '_' : c;
  while (text.ends_with('=')) text.pop_back();
  const auto pem = base64url_decode(text);
  if (!pem) return fail(Code::invalid_argument, "must be a public key in PEM, encoded in base64");
  TRY_ASSIGN(VerifyKey key, parse_pem(*pem, ""));
  if (key.type == KeyType::rsa) key.alg = "RS256";
  return key;
}

JwtVerifier::JwtVerifier(JwtSettings settings, std::vector<std::string_view> areas)
    : settings_(std::move(settings)),
      areas_(std::move(areas)),
      file_(settings_.keys_file, kMaxSetBytes),
      remote_(settings_.remote) {
  put_together();
}

void JwtVerifier::put_together() {
  keys_ = of_file_;
  keys_.insert(keys_.end(), remote_.keys().begin(), remote_.keys().end());
  if (settings_.key) keys_.push_back(*settings_.key);
  remembered_.clear();
}

void JwtVerifier::refresh(http::WatchedFile::Clock::time_point now) {
  if (remote_.refresh(now)) put_together();
  const auto text = file_.look(now);
  if (!text) return;
  auto keys = *text ? parse_jwks(**text) : std::unexpected(text->error());
  if (!keys) return log::error("CAISSON_JWKS_FILE, of which nothing is taken: " + keys.error().text());
  log::info("keys for tokens were read from " + quote(file_.path()));
  of_file_ = std::move(*keys);
  put_together();
}

void JwtVerifier::take(Result<std::string> set, http::WatchedFile::Clock::time_point now) {
  if (remote_.take(std::move(set), now)) put_together();
}

bool JwtVerifier::may_come(std::string_view token, http::WatchedFile::Clock::time_point now) {
  if (!remote_.on() || !is_jws(token)) return false;
  const auto kid = kid_of(token);
  // A token that names no key is tried with all, and is worth waiting for only while there are none.
  if (!kid || (kid->empty() && !remote_.keys().empty())) return false;
  if (!kid->empty() && std::ranges::find(keys_, *kid, &VerifyKey::kid) != keys_.end()) return false;
  return remote_.expect_new(now);
}

std::optional<Principal> JwtVerifier::verify(std::string_view token, std::int64_t now) {
  if (keys_.empty() || token.size() > kMaxToken || !is_jws(token)) return std::nullopt;
  std::string digest = sha256(token);
  if (const auto at = remembered_.find(digest); at != remembered_.end()) {
    if (now < at->second.ends) return at->second;
    remembered_.erase(at);
    return std::nullopt;
  }
  const auto verified = verify_jws(token, keys_);
  if (!verified) return std::nullopt;
  auto principal = principal_of_claims(verified->payload, settings_.rules, areas_, now);
  if (!principal) return std::nullopt;
  principal->root = std::string(kJwtRoot) + verified->fingerprint;
  principal->subject = principal->root + "/" + principal->subject;
  if (remembered_.size() >= kMaxRemembered) std::erase_if(remembered_, [&](const auto& item) { return item.second.ends <= now; });
  if (remembered_.size() >= kMaxRemembered) remembered_.erase(remembered_.begin());  // digests: none is worth more
  remembered_.emplace(std::move(digest), *principal);
  return std::move(*principal);
}

bool JwtVerifier::has_root(std::string_view root) const {
  return root.starts_with(kJwtRoot) &&
         std::ranges::find(keys_, root.substr(kJwtRoot.size()), &VerifyKey::fingerprint) != keys_.end();
}

}  // namespace caisson::auth
