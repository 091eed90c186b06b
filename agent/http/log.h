// The agent's log: one line an event on stderr, collected by the launcher. Only main, connection.cc and spawn() log;
// library code returns errors. Never pass a key, a token or a query string.
#pragma once

#include <string_view>

namespace caisson::log {

void info(std::string_view text);
void warn(std::string_view text);
void error(std::string_view text);

}  // namespace caisson::log
