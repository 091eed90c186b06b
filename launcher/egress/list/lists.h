// The lists of a workspace: each domain whose sessions go out has its own. PID 1 joins them without reading them
// (Domains::lists): for each a line with the domain, a line with the number of bytes, and these bytes. The reading end takes any
// bytes at all.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/egress/list/list.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxLists = 64, kMaxListsBytes = std::size_t{4} * 1024 * 1024;

struct Lists {
  std::map<std::string, std::shared_ptr<const List>, std::less<>> of;  // by domain; none: nothing goes out
  bool alike = true;  // all are the same: it does not matter whose connection it is
};
[[nodiscard]] Result<Lists> read_lists(std::string_view bytes);

}  // namespace caisson::egress
