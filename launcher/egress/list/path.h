// Paths by which rules and bindings limit requests: what begins with one, by whole segments, and cannot be taken for another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::egress {

inline constexpr std::size_t kMaxPathBytes = 255;

// Nothing, or what is wrong with it: a path that no request could have.
[[nodiscard]] std::string_view fault_of_path(std::string_view path);
// Whether the path is one that a server cannot take for another: no "..", no empty segment, nothing that stands for '/' or '.'.
[[nodiscard]] bool is_plain_path(std::string_view target);
// Whether the request's target, in origin form with its query, is that path or below it, whichever way a server reads it.
[[nodiscard]] bool is_at_path(std::string_view target, std::string_view path);
[[nodiscard]] bool is_at_path(std::string_view target, const std::vector<std::string>& paths);  // one of them
// "/api/, /repos/acme"
[[nodiscard]] std::string paths_text(const std::vector<std::string>& paths);

}  // namespace caisson::egress
