// `caisson`: from argv to the exit status.
#include <cstdio>
#include <string>
#include <vector>

#include "launcher/cli/commands.h"
#include "launcher/cli/policy_files.h"

int main(int argc, char** argv) {
  // Only a session of `caisson policy test` starts this program so: as its first process, which is told its home.
  if (argc == 2 && argv[0] == caisson::cli::kProbeName) caisson::cli::serve_probes();
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const int status = caisson::cli::dispatch(caisson::cli::all_commands(), words);
  // Half an answer must not look like a whole one.
  if (std::fflush(stdout) != 0 && status == 0) return caisson::code_exit_status(caisson::Code::io);
  return status;
}
