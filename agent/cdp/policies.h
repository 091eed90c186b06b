// Chromium's managed policies (browser.md §4): they guide the browser and those who use it; walls are elsewhere. Chromium reads
// the folder that /etc/chromium/policies/managed leads to, and notices a change within ten seconds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"

namespace caisson::cdp {

// What a restart may ask for.
struct Wishes {
  std::optional<std::vector<std::string>> url_blocklist, url_allowlist;  // patterns of Chromium; none: no list
  std::optional<bool> allow_file_selection_dialogs;
  std::string locale, url;
};
// At most that many patterns in a list, of at most that many bytes each. Chromium takes 1000.
inline constexpr std::size_t kMaxPatterns = 1000, kMaxPatternBytes = 2048;

[[nodiscard]] json::Value policies(const Wishes& wishes, const std::string& home);
// Writes them to one file in the folder, which is made if it is not there; the file is replaced at once.
[[nodiscard]] Status write_policies(const std::string& folder, const json::Value& content);

}  // namespace caisson::cdp
