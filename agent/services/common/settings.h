// The variables that configure the agent. Reading, bounds, defaults and the table in agent/README.md derive from their rows. The
// launcher sets the first five itself and passes the others on (launcher/common/ipc/agent_settings.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/common/base/result.h"
#include "launcher/common/ipc/agent_settings.h"

namespace caisson::services {

struct Variable {
  std::string_view name;
  std::int64_t fallback, lowest, highest;  // of a number; highest 0: the value is a text
  std::string_view text;                   // the default of a text
  std::string_view meaning;
  [[nodiscard]] constexpr bool is_number() const { return highest != 0; }
};

constexpr Variable number_row(std::string_view name, std::int64_t fallback, std::int64_t lowest, std::int64_t highest,
                              std::string_view meaning) {
  return {name, fallback, lowest, highest, "", meaning};
}
constexpr Variable text_row(std::string_view name, std::string_view text, std::string_view meaning) {
  return {name, 0, 0, 0, text, meaning};
}

inline constexpr std::int64_t kYear = 365LL * 24 * 3600;
inline constexpr auto kVariables = std::to_array<Variable>({
    text_row("CAISSON_BIND", "0.0.0.0", "address to listen on"),
    number_row("CAISSON_PORT", 8080, 1, 65'535, "port to listen on"),
    text_row("SANDBOX_API_KEY", "",
             "the key, which the launcher makes where none is given; taken as `X-AIO-API-Key`, `Authorization: Bearer` or "
             "`?api_key=`"),
    text_row("CAISSON_AUTH", "key",
             "`none`: no key is required. Only requests whose `Host` is an address, localhost or a listed name are then served; "
             "others get 403"),
    text_row("WORKSPACE", "/home/gem", "directory in which commands of the default workspace begin"),
    number_row("CAISSON_SHUTDOWN_SECONDS", 15, 0, 3600, "time of all shutdown hooks together"),
    number_row(
        "CAISSON_DRAIN_MS", 500, 0, 60'000,
        "after SIGTERM the port takes requests for this many milliseconds more, while `/readyz` is 503; what exceeds half a "
        "second is taken from `CAISSON_SHUTDOWN_SECONDS`"),
    text_row("TZ", "UTC", "time zone that `GET /v1/sandbox` reports"),
    text_row("USER", "gem", "name that `GET /v1/sandbox` reports and prompts show"),
    text_row("CAISSON_API_KEYS_FILE", "",
             "further keys, each with a name and bounds: a JSON file below `/etc/caisson/auth` (\"Who may come in\")"),
    text_row("JWT_PUBLIC_KEY", "",
             "a public key in PEM, encoded in base64: tokens that it verifies are taken as `Authorization: Bearer`. An RSA key "
             "permits RS256 alone"),
    text_row("CAISSON_JWKS_FILE", "", "further keys for tokens: a JWK set below `/etc/caisson/auth`"),
    text_row("CAISSON_JWKS_URL", "",
             "the same, fetched by `caisson-courier` (\"What the agent asks of others\"): `https://`, or a literal `http://`"),
    number_row("CAISSON_JWKS_SECONDS", 300, 1, 86'400,
               "the fetched set is fetched again when it is that old and a request comes"),
    number_row("CAISSON_JWKS_STALE_SECONDS", 86'400, 1, kYear,
               "a set that cannot be fetched again counts that long after it was fetched; then tokens of its keys are refused"),
    text_row("CAISSON_JWT_ISSUER", "", "`iss` that tokens must have; empty: any"),
    text_row("CAISSON_JWT_AUDIENCE", "", "`aud` that tokens must name; empty: tokens that name one are refused"),
    text_row(
        "CAISSON_TRUSTED_PEERS", "",
        "addresses and ranges of clients that need no key, comma-separated, such as a router's. Their requests without one must "
        "have a `Host` as with `CAISSON_AUTH=none`"),
    number_row("TICKET_TTL_SECONDS", 30, 1, 3600, "life of a ticket of `POST /tickets`"),
    text_row(
        "CAISSON_TLS_CERTIFICATE", "",
        "the server's certificate and then its issuers', in PEM, below `/etc/caisson/tls`. With it the port speaks TLS alone "
        "(\"TLS\")"),
    text_row("CAISSON_TLS_KEY", "", "the certificate's key, in PEM without a passphrase, below `/etc/caisson/tls`"),
    text_row("CAISSON_ALLOW_ORIGIN", "", "origins of web pages that may call, comma-separated; they get CORS headers"),
    text_row(
        "CAISSON_ALLOW_HOST", "",
        "further names of the server for requests that need no key, comma-separated; the names in `CAISSON_ALLOW_ORIGIN` are "
        "included"),
    text_row("CAISSON_TRUSTED_PROXIES", "",
             "addresses and ranges (`10.0.0.0/8`) of proxies, comma-separated. Only their `X-Forwarded-For`, `-Proto`, `-Host`, "
             "`Forwarded` and `X-Request-Id` are believed"),
    text_row("CAISSON_ACCESS_LOG", "stderr", "a line of JSON for each request but the probes; `off`: none"),
    number_row("CAISSON_REQUESTS_PER_SECOND", 2000, 0, 1'000'000,
               "requests of one client address, of which twice as many may come at once; more get 429. 0: no limit"),
    number_row("MAX_SHELL_SESSIONS", 128, 1, 100'000, "shell sessions at a time; the longest idle one makes room"),
    number_row("MAX_BASH_SESSIONS", 128, 1, 100'000, "bash sessions at a time; the longest idle one makes room"),
    number_row("MAX_CODE_SESSIONS", 64, 1, 100'000, "sessions for code of a workspace: runs, REPLs and prepared ones together"),
    number_row("MAX_JUPYTER_SESSIONS", 32, 1, 1000,
               "notebook sessions at a time. The longest idle one makes room; if more than 8 were never named, one of these"),
    number_row("CAISSON_WARM_SESSIONS", 2, 0, 64, "sessions kept prepared of each kind that is in use; 0: none"),
    number_row("CAISSON_SESSION_IDLE_SECONDS", 3600, 0, kYear,
               "idle sessions of bash, shells and files, and watches, end after that; 0: never. A REPL ends after the "
               "`max_idle_time` of its request, by default a day"),
    number_row(
        "CAISSON_IMPLICIT_IDLE_SECONDS", 60, 0, kYear,
        "a bash session that `exec` made without an id ends that long after its last command, unless one of its processes "
        "lives or a later command named it. Its id stays valid: its output can be read, and a command starts it again where "
        "it was. 0: it is kept like any other"),
    number_row("CAISSON_JUPYTER_IDLE_SECONDS", 1800, 0, kYear, "idle notebook sessions and unused ready kernels end; 0: never"),
    number_row("CAISSON_KERNEL_POOL", 1, 0, 16,
               "kernels kept ready in each workspace that has used one; when set, the default workspace's are made at start"),
    text_row("PYTHON_VERSION", "",
             "the default kernel, such as `3.12`; `python3` is its other name. Debian's if that is not installed"),
    number_row("CAISSON_OUTPUT_CAP_BYTES", 8 << 20, 64 << 10, 1 << 30, "kept output of one stream"),
    number_row("CAISSON_OUTPUT_TOTAL_BYTES", 256 << 20, 1 << 20, 512 << 20,
               "kept output of all sessions of all workspaces together, with everything else that is kept for them (\"Room\")"),
    text_row("CAISSON_MCP_SERVERS", "/etc/caisson/mcp/servers.json",
             "MCP servers, as `mcpServers` of other programs: a JSON file below `/etc/caisson/mcp`, which may change (\"MCP "
             "servers\")"),
    text_row("EXTRA_MCP_SERVERS", "", "further MCP servers: the same as text, whose names the file's go before"),
    number_row("DISPLAY_WIDTH", 1280, 320, 3840, "width of the screen in pixels"),
    number_row("DISPLAY_HEIGHT", 1024, 200, 2400, "height of the screen in pixels"),
    text_row("AIO_SKILLS_PATH", "skills",
             "folder of the skills of `/v1/skills`, in each workspace; a relative one starts at its home"),
    text_row("HOMEPAGE", "", "address of the browser's first page"),
    text_row("BROWSER_LANG", "en-US", "language that the browser asks sites for, a tag such as `de`"),
    text_row("CHROME_UI_LANG", "", "the same; it goes first"),
    text_row("BROWSER_USER_AGENT", "", "what the browser calls itself to sites"),
    text_row(
        "BROWSER_EXTRA_ARGS", "",
        "further arguments of Chromium, separated by a space. What would take a wall away is refused by name when it starts"),
    text_row("BROWSER_ALLOW_FILE_SELECTION_DIALOGS", "",
             "`true` or `false`: whether pages may open dialogs that choose a file; without it, Chromium decides"),
    number_row("CAISSON_HOOK_SECONDS", 60, 1, 3600, "time of each `RUN_HOOK_*`"),
    text_row("RUN_HOOK_INIT", "",
             "command of the operator's, at most 32 KiB, which finds only the system's programs: before all else"),
    text_row("RUN_HOOK_PRE_SERVICES", "", "the same, before the first request is taken"),
    text_row("RUN_HOOK_POST_READY", "", "the same, once `/readyz` is 200"),
    text_row("CAISSON_PREVIEW_HOSTS", "",
             "domains under which `{port}-{domain}` and `{port}-{id}.{domain}` are servers of the workspace, comma-separated; "
             "`none`: no name. Without it, every Host that begins with a port (1 to 65535) and a hyphen is one, unless "
             "`CAISSON_AUTH` is `none`; an address as in `10-1-2-3.ns.pod.cluster.local` is none"),
    number_row("CAISSON_PREVIEW_SECONDS", 300, 1, 86'400,
               "a server of the workspace that the proxy waits for may be silent that long; then 504. WebSockets end after that "
               "long without a byte"),
    text_row(
        "OTEL_EXPORTER_OTLP_ENDPOINT", "",
        "address of an OpenTelemetry collector, to which `/v1/traces` is added (\"Traces\"); without it there are no traces"),
    text_row("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", "the same as it is; it goes first"),
    text_row(
        "CODEX_API_KEY", "",
        "key of the session that `/codex` makes (\"Coding agents\"). Of this and the two next the first that is set is taken"),
    text_row("ARK_API_KEY", "", "the same, of Volcengine's Ark"),
    text_row("OPENAI_API_KEY", "", "the same, of OpenAI"),
    text_row("CODEX_MODEL", "", "Codex's model"),
    text_row("CODEX_BASE_URL", "",
             "where it is served, by the Responses API. Without it, by whom the key's variable names, or OpenAI"),
    text_row("CODEX_CONFIG_TOML", "", "Codex's `config.toml`, as text; it goes before what follows from the other variables"),
    text_row("CODEX_MODEL_CATALOG_JSON", "", "Codex's catalog of models (`model_catalog_json`), as text"),
    text_row("OPENCODE_API_KEY", "", "key of the session that `/opencode` makes"),
    text_row("OPENCODE_MODEL", "", "OpenCode's model"),
    text_row("OPENCODE_PROVIDER", "ark", "by whom it is served: a name of OpenCode's providers, or one of your own"),
    text_row("OPENCODE_BASE_URL", "", "where that is; OpenCode knows it of its own providers, and this server of `ark`"),
    text_row("OPENCODE_PROVIDER_NPM", "", "npm package that speaks to it, where OpenCode does not know which"),
    text_row("OPENCODE_JSON", "",
             "OpenCode's `opencode.json`, as text; its members go before what follows from the other variables"),
    text_row("OTEL_SERVICE_NAME", "caisson", "name of this service in its traces"),
});

// The row of this name. A name without a row does not compile.
consteval const Variable& variable(std::string_view name) {
  const auto row = std::ranges::find(kVariables, name, &Variable::name);
  if (row == kVariables.end()) throw "no such variable";
  return *row;
}

// Every variable that the launcher passes on has a row.
static_assert([] {
  for (std::string_view rest = kAgentVariables; !rest.empty();) {  // one pass: compilers bound what they evaluate
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (std::ranges::find(kVariables, rest.substr(0, end), &Variable::name) == kVariables.end()) return false;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return true;
}());

// The value in the environment, or the row's default. Code::invalid_argument, in one sentence: not a number within the bounds.
[[nodiscard]] Result<std::int64_t> number_from_env(const Variable& row);
// "" if it is not set.
[[nodiscard]] std::string text_from_env(const Variable& row);
// The rows as a table in Markdown.
[[nodiscard]] std::string variables_text();

}  // namespace caisson::services
