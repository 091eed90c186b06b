#include "agent/auth/claims.h"

#include <algorithm>
#include <cmath>

#include "agent/auth/jws.h"
#include "agent/auth/secret.h"
#include "launcher/common/base/json.h"

namespace caisson::auth {
namespace {

constexpr double kLatest = 253'402'300'799;  // the end of the year 9999
constexpr std::size_t kMaxSubject = 64, kMaxWorkspace = 63;

std::unexpected<Error> refused_claim(std::string_view why) { return fail(Code::permission_denied, std::string(why)); }

// A NumericDate (RFC 7519); nullopt if the claim is absent.
Result<std::optional<std::int64_t>> date(const json::Value& claims, const char* name) {
  const auto at = claims.find(name);
  if (at == claims.end()) return std::optional<std::int64_t>();
  const double seconds = at->is_number() ? at->get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kLatest)) return refused_claim("a time in the token is none");
  return std::optional(static_cast<std::int64_t>(std::floor(seconds)));
}

Result<std::int64_t> end_of(const json::Value& claims, std::int64_t now) {
  TRY_ASSIGN(const auto exp, date(claims, "exp"));
  TRY_ASSIGN(const auto nbf, date(claims, "nbf"));
  TRY_ASSIGN(const auto iat, date(claims, "iat"));
  if (!exp) return refused_claim("the token has no end");
  if (now >= *exp + kLeeway) return refused_claim("the token has ended");
  if (nbf && now + kLeeway < *nbf) return refused_claim("the token is not good yet");
  if (iat && now + kLeeway < *iat) return refused_claim("the token was issued in the future");
  return *exp + kLeeway;
}

// RFC 7519, 4.1.3: whoever is not named in the audience must refuse the token.
bool is_for(const json::Value& claims, const std::string& audience) {
  const auto at = claims.find("aud");
  if (at == claims.end()) return audience.empty();
  if (audience.empty()) return false;
  if (at->is_array()) return std::ranges::any_of(*at, [&](const json::Value& one) { return one == audience; });
  return *at == audience;
}

// For the log: visible ASCII.
std::string subject_of(const json::Value& claims) {
  const auto at = claims.find("sub");
  std::string out = at != claims.end() && at->is_string() ? at->get<std::string>() : "";
  std::erase_if(out, [](char c) { return c <= ' ' || c >= 0x7f; });
  return out.substr(0, kMaxSubject);
}

// The issuer and the subject, of bounded size whatever they are. A digest: of no pair can another be made up.
std::string holder_of(const json::Value& claims) {
  json::Value both = json::Value::array({nullptr, nullptr});
  if (const auto iss = claims.find("iss"); iss != claims.end()) both[0] = *iss;
  if (const auto sub = claims.find("sub"); sub != claims.end()) both[1] = *sub;
  return sha256(json::dump(both));
}

// RFC 9068 2.2.3 has "scope", a text; others have "scp", a text or a list. A token that has both must mean one thing.
Result<std::optional<std::string>> scope_of(const json::Value& claims) {
  std::optional<std::string> out;
  for (const char* name : {"scope", "scp"}) {
    const auto at = claims.find(name);
    if (at == claims.end()) continue;
    std::string text;
    if (at->is_string()) text = at->get<std::string>();
    else if (!at->is_array() || name == std::string_view("scope")) return refused_claim("the token's scope is not a text");
    else
      for (const json::Value& one : *at) {
        if (!one.is_string()) return refused_claim("the token's scope is not a list of texts");
        text.append(text.empty() ? "" : " ").append(one.get_ref<const std::string&>());
      }
    if (out && *out != text) return refused_claim("the token has two scopes");
    out = std::move(text);
  }
  return out;
}

}  // namespace

Result<Principal> principal_of_claims(std::string_view payload, const ClaimRules& rules, std::span<const std::string_view> areas,
                                      std::int64_t now) {
  const auto claims = json::parse(payload, {.max_bytes = kMaxToken, .max_depth = 8, .max_values = 1024});
  if (!claims || !claims->is_object()) return refused_claim("the token's claims are not a JSON object");
  Principal out{.kind = Kind::jwt, .name = "jwt:" + subject_of(*claims)};
  out.subject = holder_of(*claims);
  TRY_ASSIGN(out.ends, end_of(*claims, now));
  if (!rules.issuer.empty() && claims->value("iss", json::Value()) != rules.issuer)
    return refused_claim("the token is of another issuer");
  if (!is_for(*claims, rules.audience)) return refused_claim("the token is for another audience");
  TRY_ASSIGN(const std::optional<std::string> scope, scope_of(*claims));
  if (scope) out.bounds.scopes = Scopes::of_claim(*scope, areas);
  if (const auto workspace = claims->find("caisson_workspace"); workspace != claims->end()) {
    if (!workspace->is_string() || workspace->get_ref<const std::string&>().empty() ||
        workspace->get_ref<const std::string&>().size() > kMaxWorkspace)
      return refused_claim("the token's workspace is not a name");
    out.bounds.workspace = workspace->get<std::string>();
  }
  return out;
}

}  // namespace caisson::auth
