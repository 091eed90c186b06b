#include "agent/routes/resource_metadata.h"

#include <algorithm>

#include "agent/routes/table.h"
#include "agent/services/common/settings.h"

namespace caisson::routes {
namespace {

constexpr std::string_view kWellKnown = "/.well-known/oauth-protected-resource";

const std::string& issuer() {
  static const std::string given = services::text_from_env(services::variable("CAISSON_JWT_ISSUER"));
  return given;
}

bool is_mcp(std::string_view path) { return path == "/mcp" || path == "/v1/mcp"; }

// As the client names this server; "": its Host has characters that no host has.
std::string origin_of(const http::Request& head) {
  const auto known = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view(".-:[]_").contains(static_cast<char>(c));
  };
  return !head.host.empty() && std::ranges::all_of(head.host, known) ? head.scheme + "://" + head.host : "";
}

task<http::Response> get_metadata(Call call) {
  const std::string_view asked = std::string_view(call.request.path).substr(kWellKnown.size());
  const std::string origin = origin_of(call.request);
  if (issuer().empty() || origin.empty())
    co_return http::error_response(404, "Not Found: tokens of another issuer are taken only with CAISSON_JWT_ISSUER");
  json::Value out = json::Value::object();
  out["resource"] = origin + (asked == "/v1/mcp" ? "/v1/mcp" : "/mcp");
  out["resource_name"] = "Caisson";
  out["authorization_servers"] = json::Value::array({issuer()});
  out["bearer_methods_supported"] = json::Value::array({"header"});
  out["scopes_supported"] = json::Value::array();
  for (const Tag& tag : tags()) out["scopes_supported"].push_back(scope_name(tag.scope));
  co_return http::json_response(200, std::move(out));
}

constexpr Route kMetadata[] = {
    {http::Method::get, "/.well-known/oauth-protected-resource", "resource_metadata", Scope::system,
     kPublic | kHidden | kImmediate, Unknown::ignore, "Who issues tokens for /mcp", bind<get_metadata>()},
    {http::Method::get, "/.well-known/oauth-protected-resource/mcp", "resource_metadata_mcp", Scope::system,
     kPublic | kHidden | kImmediate, Unknown::ignore, "Who issues tokens for /mcp", bind<get_metadata>()},
    {http::Method::get, "/.well-known/oauth-protected-resource/v1/mcp", "resource_metadata_v1_mcp", Scope::system,
     kPublic | kHidden | kImmediate, Unknown::ignore, "Who issues tokens for /v1/mcp", bind<get_metadata>()},
};

}  // namespace

void add_challenge(http::Response& refusal, const http::Request& head, std::string_view error) {
  const std::string origin = origin_of(head);
  if (!is_mcp(head.path) || issuer().empty() || origin.empty()) return;
  std::string value = "Bearer realm=\"caisson\", resource_metadata=\"" + origin + std::string(kWellKnown) + head.path + "\"";
  if (!error.empty()) value.append(", error=\"").append(error).append("\"");
  if (error == "insufficient_scope") value += ", scope=\"mcp\"";
  std::erase_if(refusal.headers, [](const auto& header) { return header.first == "www-authenticate"; });
  refusal.headers.emplace_back("www-authenticate", std::move(value));
}

Area resource_metadata_routes() { return kMetadata; }

}  // namespace caisson::routes
