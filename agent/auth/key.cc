#include "agent/auth/key.h"

#include "agent/http/token.h"

namespace caisson::auth {
namespace {

// "Bearer <token>": the scheme is case-insensitive (RFC 9110 11.1).
std::optional<std::string_view> bearer_token(std::string_view value) {
  constexpr std::string_view kScheme = "bearer ";
  if (value.size() <= kScheme.size()) return std::nullopt;
  if (!http::same_ignoring_case(kScheme, value.substr(0, kScheme.size()))) return std::nullopt;
  value.remove_prefix(kScheme.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value;
}

}  // namespace

std::optional<std::string_view> key_of(const http::Request& request) {
  if (const auto header = request.header("x-aio-api-key")) return header;
  if (const auto header = request.header("authorization"))
    if (const auto token = bearer_token(*header)) return token;
  return request.query_value("api_key");
}

}  // namespace caisson::auth
