#include "agent/settings.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace caisson {
namespace {

std::string env(const char* name, std::string fallback = "") {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(fallback) : std::string(value);
}

Result<unsigned short> port_from(const std::string& text) {
  unsigned short port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0)
    return fail(Code::invalid_argument, "CAISSON_PORT must be a number from 1 to 65535, not " + quote(text));
  return port;
}

}  // namespace

Result<Settings> settings_from_env() {
  Settings settings;
  settings.bind = env("CAISSON_BIND", settings.bind);
  TRY_ASSIGN(settings.port, port_from(env("CAISSON_PORT", "8080")));
  settings.api_key = env("SANDBOX_API_KEY");
  if (char* key = std::getenv("SANDBOX_API_KEY")) ::explicit_bzero(key, settings.api_key.size());
  ::unsetenv("SANDBOX_API_KEY");
  const std::string auth = env("CAISSON_AUTH", "key");
  if (auth != "key" && auth != "none")
    return fail(Code::invalid_argument, "CAISSON_AUTH must be 'key' or 'none', not " + quote(auth));
  settings.auth_off = auth == "none";
  if (!settings.auth_off && settings.api_key.empty())
    return fail(Code::invalid_argument, "SANDBOX_API_KEY is not set; set it, or CAISSON_AUTH=none to serve everybody");
  settings.allow_origin = env("CAISSON_ALLOW_ORIGIN");
  settings.allow_host = env("CAISSON_ALLOW_HOST");
  if (settings.allow_host.find_first_of("/*") != std::string::npos)
    return fail(Code::invalid_argument,
                "CAISSON_ALLOW_HOST must be names of hosts with commas between them, not " + quote(settings.allow_host));
  settings.user = env("USER", settings.user);
  settings.workspace = env("WORKSPACE");
  settings.timezone = env("TZ");
  settings.restarted = !env("CAISSON_RESTARTED").empty();
  const std::string seconds = env("CAISSON_SHUTDOWN_SECONDS", "15");
  const auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), settings.shutdown_seconds);
  if (error != std::errc() || end != seconds.data() + seconds.size())
    return fail(Code::invalid_argument, "CAISSON_SHUTDOWN_SECONDS must be a number, not " + quote(seconds));
  return settings;
}

}  // namespace caisson
