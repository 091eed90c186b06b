#include "agent/settings.h"

#include <cstdlib>
#include <cstring>

#include "agent/services/common/variables.h"

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
  settings.api_key = services::text_from_env(variable("SANDBOX_API_KEY"));
  if (char* key = std::getenv("SANDBOX_API_KEY")) ::explicit_bzero(key, settings.api_key.size());
  ::unsetenv("SANDBOX_API_KEY");
  const std::string auth = text(variable("CAISSON_AUTH"));
  if (auth != "key" && auth != "none")
    return fail(Code::invalid_argument, "CAISSON_AUTH must be 'key' or 'none', not " + quote(auth));
  settings.auth_off = auth == "none";
  if (!settings.auth_off && settings.api_key.empty())
    return fail(Code::invalid_argument, "SANDBOX_API_KEY is not set; set it, or CAISSON_AUTH=none to serve everybody");
  settings.allow_origin = text(variable("CAISSON_ALLOW_ORIGIN"));
  settings.allow_host = text(variable("CAISSON_ALLOW_HOST"));
  if (settings.allow_host.find_first_of("/*") != std::string::npos)
    return fail(Code::invalid_argument,
                "CAISSON_ALLOW_HOST must be names of hosts with commas between them, not " + quote(settings.allow_host));
  settings.user = text(variable("USER"));
  settings.workspace = services::text_from_env(variable("WORKSPACE"));
  settings.timezone = services::text_from_env(variable("TZ"));
  if (const char* restarted = std::getenv("CAISSON_RESTARTED")) settings.restarted = *restarted != '\0';
  TRY_ASSIGN(const std::int64_t seconds, services::number_from_env(variable("CAISSON_SHUTDOWN_SECONDS")));
  settings.shutdown_seconds = static_cast<unsigned>(seconds);
  return settings;
}

}  // namespace caisson
