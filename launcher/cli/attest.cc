// `caisson attest`: becomes caisson-attest, which has libcrypto.
#include <string>
#include <vector>

#include "launcher/cli/commands.h"

namespace caisson::cli {

int attest_main(Arguments args, const Options& given) {
  Options options = given;
  std::vector<std::string> words{"caisson-attest"};
  std::vector<std::string> own;
  for (std::size_t i = 0; i < args.size();) {
    const auto global = take_global(args, i, options);
    if (!global) return report_error(global.error(), options);
    if (!*global) own.push_back(args[i++]);
  }
  if (options.help) return show_help("attest");
  if (options.json) words.emplace_back("--json");
  words.insert(words.end(), {"--run", options.run, "--socket", options.socket, "attest"});
  words.insert(words.end(), own.begin(), own.end());
  return become("caisson-attest", std::move(words), options);
}

}  // namespace caisson::cli
