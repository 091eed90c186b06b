#include "launcher/options/parse.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "launcher/common/base/sys.h"

namespace caisson {

namespace {

constexpr const char* kUsage =
    R"(usage: caisson-launcher [options]

Builds confined sessions and runs the API agent as an unprivileged child. Meant as a container's entrypoint (PID 1);
as root on a host it works the same. See also: caisson --help

  --policies DIR  policy files              CAISSON_POLICY_DIR, /etc/caisson/policies
  --preset NAME   presets/NAME.json over every domain: research, finance, medical, legal   CAISSON_PRESET
  --audit DIR     audit logs                CAISSON_AUDIT_DIR, /var/log/caisson/audit
  --audit-max-bytes N                       room for all audit logs   CAISSON_AUDIT_MAX_BYTES, 1073741824
  --run DIR       control socket            CAISSON_RUN_DIR, /run/caisson
  --home DIR      home of the sessions      CAISSON_HOME, /home/gem
  --port N        port of the API           CAISSON_PORT, 8080
  --bind ADDRESS  address of the API        CAISSON_BIND, 0.0.0.0
  --attest-key F  PEM of the Ed25519 key that signs attestations; without one, each start makes its own   CAISSON_ATTEST_KEY
  --workspaces DIR  homes of persistent workspaces; root's alone (700)   CAISSON_WORKSPACES
  --max-workspaces N  the default one counts  CAISSON_MAX_WORKSPACES, 16
  --agent PATH, --init PATH                 the other programs (default: beside this one, or /usr/lib/caisson)
  --tools DIR     the agent's programs inside sessions, shown to each of them (default: tools, found as these)
  --help, --version

environment: SANDBOX_API_KEY (without it a key is generated and printed once), CAISSON_AUTH=none (no key at all), WORKSPACE
(where clients start), CAISSON_AGENT_UID (990; auditor, courier, door and dialer: the next), CAISSON_READY_SESSIONS (2),
CAISSON_MAX_SESSIONS (1024), CAISSON_SHUTDOWN_SECONDS (15: for shutdown hooks); RUN_HOOK_INIT, _PRE_SERVICES,
_POST_READY (commands, run in sessions); of each workspace but the default: CAISSON_WORKSPACE_IDLE_SECONDS (3600),
_DISK_MIB (512), _MEMORY_MIB (4096), _PROCESSES (1024), _CPU_PERCENT (100 is one core; a quarter of all); of the default:
CAISSON_MOUNTS (places whose mounts it gets: /mnt/*:/workspace)

signals: SIGTERM and SIGINT stop everything, SIGHUP reads the policies again (all or none) and replaces a changed agent
exit codes: 0 stopped; 2 wrong option or policy; 6 a demand of the policies cannot be met here; 10 a system call failed
)";

// What settings are made of.
struct Parsed : Options {
  unsigned max_workspaces = 16, workspace_idle_seconds = 3600, workspace_disk_mib = 512, workspace_memory_mib = 4096,
           workspace_processes = 1024;
  // A quarter of the processors: beside a fork bomb that takes it all the others' commands were seen to be slower by a tenth, and
  // with a half of them twice as slow.
  unsigned workspace_cpu_percent = 25 * std::max(1U, std::thread::hardware_concurrency());
};

struct Row {
  const char* flag;
  const char* environment;
  std::string Parsed::* text;
  unsigned Parsed::* number = nullptr;
  std::uint64_t most = 0, least = 0;
  std::uint64_t Parsed::* bytes = nullptr;
};
constexpr Row kRows[] = {
    {"--policies", "CAISSON_POLICY_DIR", &Options::policy_dir},
    {"--preset", "CAISSON_PRESET", &Options::preset},
    {"--audit", "CAISSON_AUDIT_DIR", &Options::audit_dir},
    {"--audit-max-bytes", "CAISSON_AUDIT_MAX_BYTES", nullptr, nullptr, 1ULL << 50, 1 << 20, &Options::audit_max_bytes},
    {"--run", "CAISSON_RUN_DIR", &Options::run_dir},
    {"--home", "CAISSON_HOME", &Options::home},
    {"--agent", nullptr, &Options::agent},
    {"--init", nullptr, &Options::init_path},
    {"--tools", nullptr, &Options::tools},
    {"--port", "CAISSON_PORT", nullptr, &Options::port, 65535},
    {"--bind", "CAISSON_BIND", &Options::bind},
    {"--attest-key", "CAISSON_ATTEST_KEY", &Options::attest_key},
    {nullptr, "CAISSON_MOUNTS", &Options::mounts},
    {nullptr, "WORKSPACE", &Options::default_cwd},
    {nullptr, "SANDBOX_API_KEY", &Options::api_key},
    {nullptr, "CAISSON_AGENT_UID", nullptr, &Options::agent_uid, 0x7ffffffe, 1},
    {nullptr, "CAISSON_READY_SESSIONS", nullptr, &Options::ready_sessions, 64},
    {nullptr, "CAISSON_MAX_SESSIONS", nullptr, &Options::max_sessions, 16384},
    {"--workspaces", "CAISSON_WORKSPACES", &Options::homes},
    {"--max-workspaces", "CAISSON_MAX_WORKSPACES", nullptr, &Parsed::max_workspaces, 512, 1},
    {nullptr, "CAISSON_WORKSPACE_IDLE_SECONDS", nullptr, &Parsed::workspace_idle_seconds, 604800, 1},
    {nullptr, "CAISSON_WORKSPACE_DISK_MIB", nullptr, &Parsed::workspace_disk_mib, 1 << 20, 1},
    {nullptr, "CAISSON_WORKSPACE_MEMORY_MIB", nullptr, &Parsed::workspace_memory_mib, 1 << 24, 1},
    {nullptr, "CAISSON_WORKSPACE_PROCESSES", nullptr, &Parsed::workspace_processes, 32768, 1},
    {nullptr, "CAISSON_SHUTDOWN_SECONDS", nullptr, &Options::shutdown_seconds, 3600},
    {nullptr, "CAISSON_WORKSPACE_CPU_PERCENT", nullptr, &Parsed::workspace_cpu_percent, 102400, 1},
};

Status set(Parsed& options, const Row& row, const char* name, const std::string& value) {
  if (row.text != nullptr) {
    options.*row.text = value;
    return {};
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < row.least || number > row.most)
    return fail(Code::invalid_argument, std::string(name) + " must be a number from " + std::to_string(row.least) + " to " +
                                            std::to_string(row.most) + ", not " + quote(value));
  if (row.bytes != nullptr) options.*row.bytes = number;
  else options.*row.number = static_cast<unsigned>(number);
  return {};
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  Parsed options;
  for (const Row& row : kRows)
    if (const char* value = row.environment != nullptr ? std::getenv(row.environment) : nullptr;
        value != nullptr && *value != '\0')
      TRY(set(options, row, row.environment, value));
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--help" || arg == "-h") options.text = kUsage;
    else if (arg == "--version") options.text = "caisson-launcher " CAISSON_VERSION "\n";
    else {
      const auto equals = arg.find('=');
      const Row* found = nullptr;
      for (const Row& row : kRows)
        if (row.flag != nullptr && arg.substr(0, equals) == row.flag) found = &row;
      if (found == nullptr) return fail(Code::invalid_argument, "unknown option " + quote(arg) + "; see --help");
      if (equals == std::string::npos && i + 1 == argc) return fail(Code::invalid_argument, "option " + arg + " needs a value");
      TRY(set(options, *found, found->flag, equals != std::string::npos ? arg.substr(equals + 1) : argv[++i]));
    }
  }
  if (const char* auth = std::getenv("CAISSON_AUTH"); auth != nullptr && *auth != '\0') {
    if (std::strcmp(auth, "none") != 0 && std::strcmp(auth, "key") != 0)
      return fail(Code::invalid_argument, "CAISSON_AUTH must be 'key' or 'none', not " + quote(auth));
    options.auth_off = std::strcmp(auth, "none") == 0;
  }
  if (options.agent.empty()) options.agent = sys::program_path("caisson-agent");
  if (options.init_path.empty()) options.init_path = sys::program_path("caisson-init");
  if (options.tools.empty()) options.tools = sys::program_path("tools");
  const std::string port = std::to_string(options.port);
  if (options.auth_off) {
    options.greeting = "\n  *** CAISSON_AUTH=none: ANYBODY who reaches port " + port + " can run commands. ***\n\n";
  } else if (options.api_key.empty()) {
    options.api_key = sys::random_hex(24);
    options.greeting = "\nAPI key (generated, shown once): " + options.api_key +
                       "\n  curl -H \"X-AIO-API-Key: " + options.api_key + "\" http" +
                       (std::getenv("CAISSON_TLS_KEY") != nullptr ? "s" : "") + "://localhost:" + port +
                       "/v1/bash/exec -d '{\"command\":\"id; pwd; ls /\"}'\n\n";
  }
  options.auditor_uid = options.agent_uid + 1;
  options.door_uid = options.agent_uid + 3;
  options.workspaces = {.most = options.max_workspaces,
                        .disk_bytes = std::uint64_t{options.workspace_disk_mib} << 20,
                        .idle_seconds = options.workspace_idle_seconds,
                        .limits = {.processes = options.workspace_processes,
                                   .memory_bytes = std::uint64_t{options.workspace_memory_mib} << 20,
                                   .cpu_percent = options.workspace_cpu_percent}};
  return options;
}

}  // namespace caisson
