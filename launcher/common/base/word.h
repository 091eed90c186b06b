// A list of words in one string, separated by a space: the names of an enumeration in its order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace caisson {

[[nodiscard]] constexpr std::ptrdiff_t count_words(std::string_view words) { return std::ranges::count(words, ' ') + 1; }

// The word with this number; the first is 0. `number` < count_words(words).
[[nodiscard]] constexpr std::string_view word(std::string_view words, std::size_t number) {
  for (; number > 0; --number) words.remove_prefix(words.find(' ') + 1);
  return words.substr(0, words.find(' '));
}

}  // namespace caisson
