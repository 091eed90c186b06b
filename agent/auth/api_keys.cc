#include "agent/auth/api_keys.h"

#include <algorithm>
#include <array>

#include "agent/auth/secret.h"

namespace caisson::auth {
namespace {

constexpr std::string_view kKeyMembers[] = {"name", "sha256", "scopes", "workspace", "not_after"};
constexpr std::size_t kMaxName = 128;

std::unexpected<Error> bad_key(std::string what) { return fail(Code::invalid_argument, std::move(what)); }

std::optional<std::string> digest_from_hex(std::string_view hex) {
  if (hex.size() != 64) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    int byte = 0;
    for (const char c : hex.substr(i, 2)) {
      const bool digit = c >= '0' && c <= '9';
      if (!digit && (c < 'a' || c > 'f')) return std::nullopt;
      byte = byte * 16 + (digit ? c - '0' : c - 'a' + 10);
    }
    out += static_cast<char>(byte);
  }
  return out;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
}

Result<std::vector<std::string>> scope_list(const json::Value& list) {
  if (!list.is_array()) return bad_key("'scopes' must be a list of names");
  std::vector<std::string> out;
  for (const json::Value& item : list) {
    if (!item.is_string()) return bad_key("'scopes' must be a list of names");
    out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace

ApiKeys::ApiKeys(std::string_view secret, std::vector<std::string_view> areas) : areas_(std::move(areas)) {
  if (secret.empty()) return;
  keys_.push_back({.name = "SANDBOX_API_KEY", .digest = sha256(secret)});
  fixed_ = 1;
}

Result<ApiKey> ApiKeys::entry(const json::Value& value) const {
  if (!value.is_object()) return bad_key("must be an object");
  for (const auto& [name, member] : value.items())
    if (std::ranges::find(kKeyMembers, name) == std::end(kKeyMembers)) return bad_key("unknown member " + quote(name));
  ApiKey key;
  TRY_ASSIGN(const auto name, json::get_string(value, "name"));
  if (!name || !is_plain_name(*name)) return bad_key("'name' must be up to 128 visible ASCII characters");
  key.name = *name;
  TRY_ASSIGN(const auto hex, json::get_string(value, "sha256"));
  const auto digest = digest_from_hex(hex.value_or(""));
  if (!digest) return bad_key("'sha256' must be 64 hexadecimal digits in lower case");
  key.digest = *digest;
  if (const auto scopes = value.find("scopes"); scopes != value.end() && !scopes->is_null()) {
    TRY_ASSIGN(const std::vector<std::string> names, scope_list(*scopes));
    TRY_ASSIGN(key.bounds.scopes, Scopes::parse(names, areas_));
  }
  TRY_ASSIGN(key.bounds.workspace, json::get_string(value, "workspace"));
  if (key.bounds.workspace && !is_plain_name(*key.bounds.workspace))
    return bad_key("'workspace' must be the name of a workspace");
  TRY_ASSIGN(const auto end, json::get_int(value, "not_after"));
  if (end && *end <= 0) return bad_key("'not_after' must be seconds since 1970");
  key.not_after = end.value_or(0);
  return key;
}

Status ApiKeys::load(std::string_view text) {
  TRY_ASSIGN(const json::Value list,
             json::parse(text, {.max_bytes = kMaxFileBytes, .max_depth = 4, .max_values = kMaxKeys * (kMaxName + 16)}));
  if (!list.is_array() || list.size() > kMaxKeys)
    return bad_key("must be a list of at most " + std::to_string(kMaxKeys) + " keys");
  std::vector<ApiKey> keys(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(fixed_));
  for (const json::Value& value : list) {
    auto key = entry(value);
    if (!key) return std::unexpected(std::move(key).error().wrap("key " + std::to_string(keys.size() - fixed_ + 1)));
    // Two keys with one name could not be told apart in the log; two with one digest would have two bounds.
    for (const ApiKey& other : keys)
      if (other.name == key->name || other.digest == key->digest)
        return bad_key("key " + std::to_string(keys.size() - fixed_ + 1) + ": " + quote(key->name) + " is there twice");
    keys.push_back(std::move(*key));
  }
  keys_ = std::move(keys);
  return {};
}

const ApiKey* ApiKeys::by_digest(std::string_view digest, std::int64_t now) const {
  const ApiKey* found = nullptr;
  for (const ApiKey& key : keys_)
    if (same_secret(key.digest, digest)) found = &key;
  return found != nullptr && (found->not_after == 0 || now < found->not_after) ? found : nullptr;
}

}  // namespace caisson::auth
