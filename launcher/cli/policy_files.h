// What the `caisson policy` commands share: how problems are shown, and the expectations beside policies (tests/*.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/commands.h"
#include "launcher/common/base/json.h"
#include "launcher/compiler/load.h"

namespace caisson::cli {

// All domains, with what is mounted below CAISSON_MOUNTS, as the launcher that has these options would read them.
[[nodiscard]] Result<policy::Choice> choose(const Options& options, const std::string& preset);
int show_problems(const std::vector<policy::Problem>& list, const std::string& directory, const Options& options);
std::unexpected<Error> no_domain(const std::string& name, const std::string& directory, const std::vector<std::string>& known);

// One expectation: {"can": "read", "path": "/etc/passwd"}, {"cannot": "call", "syscall": "mount", "errno": "EPERM"}, …
struct Expectation {
  bool can = false;
  std::string verb;    // read write see run connect listen call exceed
  std::string object;  // path, "127.0.0.1:80", system call or limit
  std::vector<std::string> argv;
  std::vector<std::uint64_t> args;  // of a system call
  int error = 0;                    // cannot: with this errno; 0: any that counts as a refusal
  int line = 0;
  [[nodiscard]] std::string text() const;
};

struct TestFile {
  std::string file, domain, preset;
  std::vector<Expectation> expect;
};
struct TestFiles {
  std::vector<TestFile> files;
  std::vector<policy::Problem> problems;
};
// A file, or every *.json of a directory; one that does not exist holds none.
[[nodiscard]] TestFiles load_tests(const std::string& path);
[[nodiscard]] TestFiles load_test_file(const std::string& path);

// What a probe found out. refused: the walls refused it, with `error`.
enum class Outcome : std::uint32_t { worked, refused, failed };
struct Finding {
  Outcome outcome = Outcome::failed;
  int error = 0;       // errno
  std::string detail;  // for people
};

// The first process of a test's session: `caisson` itself, executed in place of caisson-init. Serves one probe after the
// other from its socket and never returns. argv[0] tells it.
[[noreturn]] void serve_probes();
inline constexpr std::string_view kProbeName = "caisson-init";
inline constexpr std::size_t kMaxProbeMessage = 64 * 1024;
// Makes one probe in this process: for tests, and inside a session.
[[nodiscard]] Finding probe(const Expectation& e, const json::Value& environment);
[[nodiscard]] json::Value to_json(const Expectation& e);
[[nodiscard]] Result<Expectation> expectation_from(const json::Value& object);

}  // namespace caisson::cli
