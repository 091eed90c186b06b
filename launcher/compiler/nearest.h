// The nearest known word, for "meant '…'?". Of people's files and command lines: no part of the launcher, whose clients are
// programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

// The candidate that `word` was probably meant to be, or empty when none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace caisson::policy
