// Text checks of the policy loader: canonical paths and names. Pure; lexical only: what a path really is, the launcher learns by
// opening it with openat2.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

inline constexpr std::size_t kMaxPath = 4095;  // PATH_MAX counts the final NUL
inline constexpr std::size_t kMaxName = 255;   // of what is protected

// What a string must be. One checker for values, list elements and map keys.
enum class Form { any, path, name, domain, hostname, env_name, env_pattern, syscall, pointer };

struct Fault {
  std::string what;
  std::string meant;  // or empty
};
// nullopt: `text` has that form.
[[nodiscard]] std::optional<Fault> form_fault(Form form, std::string_view text);
// The same for Form::path.
[[nodiscard]] std::optional<Fault> path_fault(std::string_view path);

// "/a/./b//../c/" -> "/a/c".
[[nodiscard]] std::string canonical(std::string_view path);
// `path` is `root` or below it; both canonical.
[[nodiscard]] bool inside(std::string_view path, std::string_view root);
// "a b c" -> {"a", "b", "c"}.
[[nodiscard]] std::vector<std::string> split(std::string_view words);

}  // namespace caisson::policy
