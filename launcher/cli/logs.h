// Where audit logs lie, shared by the `audit` commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace caisson::cli {

// A word with a '/' is a file; else a session's id (or a file's name) in `directory`.
[[nodiscard]] std::string log_path(const std::string& directory, std::string_view word);
// All *.ndjson of `directory`, sorted by name.
[[nodiscard]] Result<std::vector<std::string>> log_names(const std::string& directory);
// Left-aligned columns two spaces apart; the first row is the head.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows);
// Puts what a user can do behind an error of reading the audit directory.
[[nodiscard]] Error explain_access(Error error);

}  // namespace caisson::cli
