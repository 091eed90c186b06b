// The commands of `caisson` and what they share. Each takes what is behind its name, parsed as its row of the table says
// (commands.cc: all of them, with their help), and returns the exit status.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launcher/cli/args.h"
#include "launcher/common/base/result.h"

namespace caisson::cli {

// Beside 0 and those of Code (result.cc).
inline constexpr int kExitBrokenLog = 20;
inline constexpr int kExitBadPolicy = 21;
inline constexpr int kExitExpectation = 22;

// Global options, accepted before and behind the command's name.
struct Options {
  bool json = false;
  bool help = false;
  std::string policies;  // --policies, CAISSON_POLICY_DIR
  std::string preset;    // --preset, CAISSON_PRESET; empty: none
  std::string audit;     // --audit, CAISSON_AUDIT_DIR
  std::string run;       // --run, CAISSON_RUN_DIR
  std::string socket;    // --socket; default: control.sock in `run`
};

using Arguments = std::span<const std::string>;
struct Syntax {
  std::span<const Flag> flags;
  std::size_t least_words = 0, most_words = 0;
  int (*raw)(Arguments args, const Options& options) = nullptr;  // takes all that is behind the name itself, instead of `main`
};
using Main = Result<int>(const Args& args, const Options& options);  // the exit status
struct Command {
  std::string_view name;  // one or two words
  std::string_view summary;
  std::string_view help;  // begins with the synopsis
  Syntax syntax;
  Main* main;
};

Main ask_ls, ask_allow, ask_deny, ask_revoke;
Main secret_set, secret_revoke;
Main audit_show, audit_tail, audit_verify, audit_ls, audit_stats, audit_export, session_ls, session_kill, agent_restart,
    session_report, policy_check, policy_explain, policy_learn, policy_test, policy_import, probe_main, version_main;
int run_main(Arguments args, const Options& options);
int attest_main(Arguments args, const Options& options);  // becomes caisson-attest

// Becomes another of our programs, beside this one; returns only with the exit status of an error.
int become(const std::string& program, std::vector<std::string> words, const Options& options);
inline constexpr Flag kVerifyFlags[] = {{"--complete", "", false}, {"--key", "-k", true}};
// Set in caisson-attest, which has libcrypto: `audit verify --key` is its.
extern Status (*g_check_signature)(const std::string& key, const std::string& text, const std::string& signature);

// What `caisson probe` shows: the features of this kernel and container, the tier, and what would raise it.
[[nodiscard]] nlohmann::json probe_report();

[[nodiscard]] std::span<const Command> all_commands();

// Finds the command of `words` (argv without the program's name), takes the global options, answers --help.
int dispatch(std::span<const Command> commands, Arguments words);

// The help of one command; for a raw one, which sees --help itself.
int show_help(std::string_view command);

// Consumes the global option at args[at] and its value, moving `at` behind them. false: it is none.
[[nodiscard]] Result<bool> take_global(Arguments args, std::size_t& at, Options& options);
[[nodiscard]] Options default_options();

// Says it on stderr (with --json on stdout as {"ok": false, "error": {...}}); the exit status of its code.
int report_error(const Error& error, const Options& options);
// One document, ASCII only; indented on a terminal.
void print_json(const nlohmann::json& value);
void print(std::string_view text);
// As JSON or as an outline, whichever is asked for; 0.
int print_document(const nlohmann::json& value, const Options& options);
// Any document as indented "key  value" lines, for people; strings escaped.
[[nodiscard]] std::string outline(const nlohmann::json& value);

}  // namespace caisson::cli
