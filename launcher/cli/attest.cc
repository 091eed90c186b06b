// `caisson attest`: becomes caisson-attest, which has libcrypto.
#include <unistd.h>

#include <string>
#include <vector>

#include "launcher/base/sys.h"
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
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string program = sys::program_path("caisson-attest");
  ::execv(program.c_str(), argv.data());
  return report_error(sys_error("execute " + quote(program)).error(), options);
}

}  // namespace caisson::cli
