// Files that a client sends in base64, in the form for programs in a session: a list of {path, bytes}, then all bytes one after
// the other (agent/worker/starter.cc, `place` of agent/inside/kernel_bridge.py). Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "launcher/common/base/json.h"

namespace caisson::services {

struct PackedFiles {
  json::Value list = json::Value::array();
  std::string body;
  void add(std::string_view path, std::string_view bytes);
};
// invalid_argument: one is not base64.
[[nodiscard]] Result<PackedFiles> pack_files(const std::map<std::string, std::string>& base64);

inline constexpr std::size_t kMostFetched = 64;                    // files that one request may ask for
inline constexpr std::size_t kMostFetchedBytes = 8 * 1024 * 1024;  // of each
// Code::limit: there are more.
[[nodiscard]] Status check_fetched(std::size_t count);

}  // namespace caisson::services
