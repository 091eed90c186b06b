// caisson-options: reads the options of caisson-launcher, and makes the directories that they name, so that PID 1 holds none of
// this code. It gets the launcher's own arguments, and its environment on descriptor 0: NAME=VALUE, each ended by a NUL. On
// descriptor 1: the launcher's version and Options (pid1/options.h).
#include <cstdlib>

#include "launcher/common/base/sys.h"
#include "launcher/common/policy/frozen.h"
#include "launcher/options/directories.h"
#include "launcher/options/parse.h"

namespace {

constexpr std::size_t kMaxEnvironment = 4U << 20;  // more than an exec takes (ARG_MAX)

caisson::Result<caisson::Options> read(int argc, char** argv) {
  TRY_ASSIGN(std::string environment, caisson::sys::read_fd(0, kMaxEnvironment));
  for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1)
    if (::putenv(&environment[at]) != 0) return caisson::sys_error("putenv");
  auto options = caisson::parse_options(argc, argv);
  ::clearenv();  // it is of `environment`
  if (options && options->text.empty()) TRY(caisson::settle_directories(*options));
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  caisson::Options answer;
  if (auto options = read(argc, argv)) answer = std::move(*options);
  else answer.text = "caisson-launcher: " + options.error().text() + "\n", answer.status = code_exit_status(options.error().code);
  caisson::policy::Writer out;
  out(caisson::policy::frozen_mark(), answer);
  return caisson::sys::write_all(1, out.bytes) ? 0 : 1;
}
