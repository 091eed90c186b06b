// From words to a command: the global options, help, did-you-mean, and how errors and JSON are printed.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "launcher/cli/commands.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/policy/text_checks.h"
#include "launcher/compiler/nearest.h"

namespace caisson::cli {
namespace {

struct GlobalRow {
  std::string_view flag;
  std::string Options::* member;
  const char* environment;
  const char* fallback;
};
constexpr GlobalRow kGlobals[] = {
    {"--policies", &Options::policies, "CAISSON_POLICY_DIR", "/etc/caisson/policies"},
    {"--preset", &Options::preset, "CAISSON_PRESET", ""},
    {"--audit", &Options::audit, "CAISSON_AUDIT_DIR", "/var/log/caisson/audit"},
    {"--run", &Options::run, "CAISSON_RUN_DIR", "/run/caisson"},
    {"--socket", &Options::socket, nullptr, ""},
};

constexpr std::string_view kIntroduction =
    "usage: caisson [--json] COMMAND [ARGUMENTS]\n\n"
    "Runs commands in kernel-confined sessions, and shows what confined them.\n\ncommands:\n";
constexpr std::string_view kClosing = R"(
global options (before or behind the command):
  --json           one JSON document on stdout; errors too: {"ok": false, "error": {...}}
  --help, -h       the command's own help, with examples
  --version        as the command `version`
  --policies DIR   policy files            CAISSON_POLICY_DIR, /etc/caisson/policies
  --preset NAME    presets/NAME.json laid over every policy     CAISSON_PRESET
  --audit DIR      audit logs              CAISSON_AUDIT_DIR, /var/log/caisson/audit
  --run DIR        launcher's control dir  CAISSON_RUN_DIR, /run/caisson
  --socket PATH    control socket          DIR/control.sock

exit codes:
  0 done   2 wrong input   3 not found   4 refused (policy, kernel, not root)   5 exists   6 unavailable here
  7 limit reached   8 timed out   9 protocol broken   10 system call failed   11 internal error
  20 an audit log is broken   21 a policy has problems   22 an expectation does not hold
  `run`: see `caisson run --help`
)";

std::string overview(std::span<const Command> commands, std::string_view group) {
  std::string out(group.empty() ? kIntroduction : "usage: caisson " + std::string(group) + " COMMAND [ARGUMENTS]\n\n");
  for (const Command& c : commands) {
    if (!group.empty() && !c.name.starts_with(std::string(group) + " ")) continue;
    out.append("  ").append(c.name).append(c.name.size() < 16 ? 16 - c.name.size() : 1, ' ').append(c.summary).append("\n");
  }
  return out.append(group.empty() ? kClosing : "\nEach has its own --help. Global options and exit codes: caisson --help\n");
}

bool is_group(std::span<const Command> commands, std::string_view word) {
  for (const Command& c : commands)
    if (c.name.size() > word.size() && c.name.starts_with(word) && c.name[word.size()] == ' ') return true;
  return false;
}

// How many words of `words` name `command`; 0: they do not.
std::size_t match(const Command& command, Arguments words) {
  if (!words.empty() && command.name == words[0]) return 1;
  return words.size() > 1 && command.name == words[0] + " " + words[1] ? 2 : 0;
}

int unknown_command(std::span<const Command> commands, Arguments words, const Options& options) {
  const bool group = is_group(commands, words[0]);
  const std::string typed = group && words.size() > 1 ? words[0] + " " + words[1] : words[0];
  std::vector<std::string> names;
  for (const Command& c : commands) {
    names.emplace_back(c.name);
    if (!group) names.emplace_back(c.name.substr(0, c.name.find(' ')));
  }
  const std::string meant = policy::nearest(typed, names);
  const std::string hint = meant.empty() ? "" : "; meant '" + meant + "'?";
  const std::string what = "unknown command " + quote(typed) + hint + " (all: caisson --help)";
  return report_error(Error(Code::invalid_argument, what), options);
}

// Takes the global options out of `words`: all in front of the command and, unless it is raw, all up to "--".
Result<std::vector<std::string>> split_globals(std::span<const Command> commands, Arguments words, Options& options) {
  std::vector<std::string> rest;
  bool raw = false;
  for (std::size_t i = 0; i < words.size();) {
    if (!raw) {
      TRY_ASSIGN(const bool taken, take_global(words, i, options));
      if (taken) continue;
    }
    raw = raw || words[i] == "--";
    rest.push_back(words[i++]);
    for (const Command& c : commands) raw = raw || (c.syntax.raw != nullptr && rest.size() == match(c, rest));
  }
  return rest;
}

}  // namespace

Options default_options() {
  Options options;
  for (const GlobalRow& row : kGlobals) {
    const char* value = row.environment != nullptr ? std::getenv(row.environment) : nullptr;
    options.*row.member = value != nullptr && *value != '\0' ? value : row.fallback;
  }
  return options;
}

Result<bool> take_global(Arguments args, std::size_t& at, Options& options) {
  const std::string& arg = args[at];
  if (arg == "--json" || arg == "--help" || arg == "-h") {
    (arg == "--json" ? options.json : options.help) = true;
    ++at;
    return true;
  }
  for (const GlobalRow& row : kGlobals) {
    if (arg.starts_with(row.flag) && arg.size() > row.flag.size() && arg[row.flag.size()] == '=') {
      options.*row.member = arg.substr(row.flag.size() + 1);
    } else if (arg == row.flag) {
      if (at + 1 == args.size()) return fail(Code::invalid_argument, "option " + quote(arg) + " needs a value");
      options.*row.member = args[++at];
    } else {
      continue;
    }
    ++at;
    return true;
  }
  return false;
}

int dispatch(std::span<const Command> commands, Arguments words) {
  Options options = default_options();
  auto taken = split_globals(commands, words, options);
  if (!taken) return report_error(taken.error(), options);
  if (!taken->empty() && taken->front() == "--version") taken->front() = "version";
  Arguments rest = *taken;
  if (!rest.empty() && rest[0] == "help") {
    options.help = true;
    rest = rest.subspan(1);
  }
  if (rest.empty()) {
    print(overview(commands, ""));
    return options.help ? 0 : code_exit_status(Code::invalid_argument);
  }
  for (const Command& c : commands) {
    const std::size_t used = match(c, rest);
    if (used == 0) continue;
    const Arguments args = rest.subspan(used);
    if (options.help || (c.syntax.raw != nullptr && !args.empty() && (args[0] == "--help" || args[0] == "-h"))) {
      print("usage: " + std::string(c.help));
      return 0;
    }
    if (c.syntax.raw != nullptr) return c.syntax.raw(args, options);
    const auto parsed = Args::parse(args, c.syntax.flags, c.syntax.least_words, c.syntax.most_words);
    const Result<int> status = parsed ? c.main(*parsed, options) : std::unexpected(parsed.error());
    return status ? *status : report_error(status.error(), options);
  }
  if (rest.size() > 1 || !is_group(commands, rest[0])) return unknown_command(commands, rest, options);
  print(overview(commands, rest[0]));
  return options.help ? 0 : code_exit_status(Code::invalid_argument);
}

int become(const std::string& name, std::vector<std::string> words, const Options& options) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string program = sys::program_path(name);
  ::execv(program.c_str(), argv.data());
  return report_error(sys_error("execute " + quote(program)).error(), options);
}

int report_error(const Error& error, const Options& options) {
  if (options.json) {
    json::Value detail{{"code", code_name(error.code)}, {"what", error.what}};
    if (error.sys != 0) detail["errno"] = errno_name(error.sys);
    print_json({{"ok", false}, {"error", std::move(detail)}});
  } else {
    std::fprintf(stderr, "caisson: %s\n", error.text().c_str());
  }
  return code_exit_status(error.code);
}

void print_json(const nlohmann::json& value) {
  print(value.dump(::isatty(STDOUT_FILENO) == 1 ? 2 : -1, ' ', true, json::Value::error_handler_t::replace) + "\n");
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace caisson::cli
