#include "agent/settings.h"

#include <cstdlib>
#include <cstring>

#include "agent/courier/destinations.h"
#include "agent/services/common/settings.h"

namespace caisson {
namespace {

using services::Variable;
using services::variable;

std::string text(const Variable& row) {
  std::string given = services::text_from_env(row);
  return given.empty() ? std::string(row.text) : given;
}

}  // namespace

Result<Settings> settings_from_env() {
  Settings settings;
  settings.bind = text(variable("CAISSON_BIND"));
  TRY_ASSIGN(const std::int64_t port, services::number_from_env(variable("CAISSON_PORT")));
  settings.port = static_cast<unsigned short>(port);
  settings.auth.api_key = services::text_from_env(variable("SANDBOX_API_KEY"));
  if (char* key = std::getenv("SANDBOX_API_KEY")) ::explicit_bzero(key, settings.auth.api_key.size());
  ::unsetenv("SANDBOX_API_KEY");
  const std::string auth = text(variable("CAISSON_AUTH"));
  if (auth != "key" && auth != "none")
    return fail(Code::invalid_argument, "CAISSON_AUTH must be 'key' or 'none', not " + quote(auth));
  settings.auth.off = auth == "none";
  if (!settings.auth.off && settings.auth.api_key.empty())
    return fail(Code::invalid_argument, "SANDBOX_API_KEY is not set; set it, or CAISSON_AUTH=none to serve everybody");
  settings.auth.keys_file = text(variable("CAISSON_API_KEYS_FILE"));
  if (const std::string key = text(variable("JWT_PUBLIC_KEY")); !key.empty()) {
    auto parsed = auth::key_of_variable(key);
    if (!parsed) return std::unexpected(std::move(parsed).error().wrap("JWT_PUBLIC_KEY"));
    settings.auth.jwt.key = std::move(*parsed);
  }
  auto peers = http::Networks::parse(text(variable("CAISSON_TRUSTED_PEERS")));
  if (!peers) return std::unexpected(std::move(peers).error().wrap("CAISSON_TRUSTED_PEERS"));
  if (peers->has_everything())
    return fail(Code::invalid_argument, "CAISSON_TRUSTED_PEERS must not be every address: CAISSON_AUTH=none serves everybody");
  settings.auth.peers = std::move(*peers);
  settings.auth.jwt.keys_file = text(variable("CAISSON_JWKS_FILE"));
  if (settings.jwks_url = text(variable("CAISSON_JWKS_URL")); !settings.jwks_url.empty())
    if (const auto url = courier::parse_url(settings.jwks_url); !url)
      return std::unexpected(Error(url.error()).wrap("CAISSON_JWKS_URL"));
  TRY_ASSIGN(const auto collector, courier::traces_url(text(variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")),
                                                       text(variable("OTEL_EXPORTER_OTLP_ENDPOINT"))));
  settings.traced = collector.has_value();
  settings.service_name = text(variable("OTEL_SERVICE_NAME"));
  TRY_ASSIGN(const std::int64_t period, services::number_from_env(variable("CAISSON_JWKS_SECONDS")));
  TRY_ASSIGN(const std::int64_t stale, services::number_from_env(variable("CAISSON_JWKS_STALE_SECONDS")));
  settings.auth.jwt.remote = {.period = std::chrono::seconds(period), .stale = std::chrono::seconds(stale)};
  settings.auth.jwt.rules = {.issuer = text(variable("CAISSON_JWT_ISSUER")), .audience = text(variable("CAISSON_JWT_AUDIENCE"))};
  TRY_ASSIGN(const std::int64_t ticket_seconds, services::number_from_env(variable("TICKET_TTL_SECONDS")));
  settings.auth.ticket_life = std::chrono::seconds(ticket_seconds);
  settings.tls_certificate = text(variable("CAISSON_TLS_CERTIFICATE"));
  settings.tls_key = text(variable("CAISSON_TLS_KEY"));
  if (settings.tls_certificate.empty() != settings.tls_key.empty())
    return fail(Code::invalid_argument, "CAISSON_TLS_CERTIFICATE and CAISSON_TLS_KEY must be set together");
  settings.allow_origin = text(variable("CAISSON_ALLOW_ORIGIN"));
  settings.allow_host = text(variable("CAISSON_ALLOW_HOST"));
  if (settings.allow_host.find_first_of("/*") != std::string::npos)
    return fail(Code::invalid_argument,
                "CAISSON_ALLOW_HOST must be names of hosts with commas between them, not " + quote(settings.allow_host));
  auto proxies = http::Networks::parse(text(variable("CAISSON_TRUSTED_PROXIES")));
  if (!proxies) return fail(Code::invalid_argument, "CAISSON_TRUSTED_PROXIES: " + proxies.error().what);
  settings.trusted_proxies = std::move(*proxies);
  const std::string access_log = text(variable("CAISSON_ACCESS_LOG"));
  if (access_log != "stderr" && access_log != "off")
    return fail(Code::invalid_argument, "CAISSON_ACCESS_LOG must be 'stderr' or 'off', not " + quote(access_log));
  settings.access_log = access_log == "stderr";
  TRY_ASSIGN(settings.requests_per_second, services::number_from_env(variable("CAISSON_REQUESTS_PER_SECOND")));
  settings.preview_hosts = text(variable("CAISSON_PREVIEW_HOSTS"));
  TRY_ASSIGN(const std::int64_t silent, services::number_from_env(variable("CAISSON_PREVIEW_SECONDS")));
  settings.preview_seconds = static_cast<unsigned>(silent);
  settings.user = text(variable("USER"));
  settings.workspace = services::text_from_env(variable("WORKSPACE"));
  settings.timezone = services::text_from_env(variable("TZ"));
  if (const char* restarted = std::getenv("CAISSON_RESTARTED")) settings.restarted = *restarted != '\0';
  TRY_ASSIGN(const std::int64_t seconds, services::number_from_env(variable("CAISSON_SHUTDOWN_SECONDS")));
  settings.shutdown_seconds = static_cast<unsigned>(seconds);
  TRY_ASSIGN(const std::int64_t drain_ms, services::number_from_env(variable("CAISSON_DRAIN_MS")));
  settings.drain = std::chrono::milliseconds(drain_ms);
  return settings;
}

}  // namespace caisson
