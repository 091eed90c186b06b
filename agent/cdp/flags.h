// Chromium's command line: one table of flags, and what the operator may add to it (BROWSER_EXTRA_ARGS). An argument that would
// take a wall away, or the pipe by which we hold the browser, is refused by name. Chromium reads an argument with one or two
// dashes and trims white space around it (base/command_line.cc), so it is judged in that form, and without regard to case.
#pragma once

#include <string>
#include <vector>

#include "launcher/common/base/result.h"

namespace caisson::cdp {

struct Start {
  std::string program, profile, home;
  std::string locale;              // "": the environment's
  std::string url;                 // opened first; "": a blank page
  std::vector<std::string> extra;  // each passed check_extra()
};

// Errors: invalid_argument, a sentence that names the argument.
[[nodiscard]] Status check_extra(const std::vector<std::string>& extra, const std::string& home);

// A language tag such as de or pt-BR: 2 to 16 letters, digits and dashes.
[[nodiscard]] bool is_locale(const std::string& locale);
// An address for the first page: http, https, file, about or data, without control characters, at most 2048 bytes.
[[nodiscard]] bool is_first_url(const std::string& url);

// argv of Chromium. Of --enable-features and --disable-features Chromium takes the last one only, so the operator's are put
// together with ours.
[[nodiscard]] std::vector<std::string> command_line(const Start& start);

}  // namespace caisson::cdp
