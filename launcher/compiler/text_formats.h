// The forms that texts of policy files must have. Pure and only lexical. PID 1 has no part of this: it meets paths only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/policy/text_checks.h"

namespace caisson::policy {

inline constexpr std::size_t kMaxName = 255;  // of what is protected
// Prefixes of grant sources that are not paths of the container: a directory of the workspace's home, one in its memory.
inline constexpr std::string_view kOfHome = "home:", kOfWorkspace = "workspace:";

// What a string must be. One checker for values, list elements and map keys.
enum class Form { any, path, source, name, domain, hostname, env_name, env_pattern, syscall, pointer };

struct Fault {
  std::string what;
  std::string meant;  // or empty
};
// nullopt: `text` has that form.
[[nodiscard]] std::optional<Fault> form_fault(Form form, std::string_view text);
// The same for Form::path.
[[nodiscard]] std::optional<Fault> path_fault(std::string_view path);

}  // namespace caisson::policy
