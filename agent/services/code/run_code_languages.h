// The one table of the languages of POST /run_code, and which of them the system has. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/services/program/toolchains.h"

namespace caisson::services {

// A language has a row for each way to run it; the first whose programs are there is taken.
struct ProgramLanguage {
  std::string_view name;      // as clients say it
  std::string_view source;    // file that the code is put into
  std::string_view needs;     // program without which it is not offered; "node 22.7": at least that version
  std::string_view compile;   // words; "": nothing to compile
  std::string_view run;       // words
  std::string_view packages;  // of Debian, which have it
  bool reserves = false;      // its runtime reserves far more than it uses: the session's limit alone holds
};
[[nodiscard]] std::span<const ProgramLanguage> program_languages();
// not_found: the error names the package that would install it, or says that it is unknown, and lists what is installed.
[[nodiscard]] Result<const ProgramLanguage*> choose_language(std::string_view name, const ToolInventory& tools);
// A command line's words; programs by their path where we know it.
[[nodiscard]] std::vector<std::string> command_words(std::string_view line, const ToolInventory& tools);

}  // namespace caisson::services
