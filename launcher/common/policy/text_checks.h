// Canonical paths as texts; more about texts of policy files: compiler/text_formats.h. Pure and only lexical: the launcher finds
// out what a path is by opening it with openat2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

inline constexpr std::size_t kMaxPath = 4095;  // PATH_MAX counts the final NUL

// "/a/./b//../c/" -> "/a/c".
[[nodiscard]] std::string canonical(std::string_view path);
// `path` is `root` or below it; both canonical.
[[nodiscard]] constexpr bool inside(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}
// "a b c" -> {"a", "b", "c"}.
[[nodiscard]] std::vector<std::string> split(std::string_view words);

}  // namespace caisson::policy
