// The agent's log: one line for each event on stderr, collected by the launcher. Library code returns errors and logs nothing.
// Never pass a key, a token or a query string.
#pragma once

#include <string_view>

namespace caisson::log {

void info(std::string_view text);
void warn(std::string_view text);
void error(std::string_view text);

}  // namespace caisson::log
