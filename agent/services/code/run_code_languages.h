// The table of the languages of POST /run_code, and the choice among those that the system has. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/services/program/toolchains.h"

namespace caisson::services {

// A language has a row for each way to run it; the first row whose programs are installed is used.
struct ProgramLanguage {
  std::string_view name;      // as clients name it
  std::string_view source;    // file for the code
  std::string_view needs;     // required program; "node 22.7": at least that version
  std::string_view compile;   // words; "": nothing to compile
  std::string_view run;       // words
  std::string_view packages;  // of Debian, which install it
  bool reserves = false;      // its runtime reserves far more than it uses, so only the session's limit applies
};
[[nodiscard]] std::span<const ProgramLanguage> program_languages();
// not_found: the error names the package that would install it, or says that it is unknown, and lists what is installed.
[[nodiscard]] Result<const ProgramLanguage*> choose_language(std::string_view name, const ToolInventory& tools);
// The words of a command line, with programs by their path if it is known.
[[nodiscard]] std::vector<std::string> command_words(std::string_view line, const ToolInventory& tools);

}  // namespace caisson::services
