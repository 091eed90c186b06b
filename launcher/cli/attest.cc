// `caisson attest`: becomes caisson-attest, which has libcrypto.
#include <algorithm>
#include <string>
#include <vector>

#include "launcher/cli/commands.h"

namespace caisson::cli {

// The arguments are passed on unchanged: the program also takes the global options.
int attest_main(Arguments args, const Options& options) {
  if (std::ranges::any_of(args, [](const auto& word) { return word == "--help" || word == "-h"; })) return show_help("attest");
  std::vector<std::string> words{"caisson-attest", "--run", options.run, "--socket", options.socket, "attest"};
  if (options.json) words.emplace_back("--json");
  words.insert(words.end(), args.begin(), args.end());
  return become("caisson-attest", std::move(words), options);
}

}  // namespace caisson::cli
