// Pieces of header fields (RFC 9110, section 5.6).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace caisson::http {

// Without spaces and tabs at both ends.
[[nodiscard]] inline std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// RFC 9110, section 5.6.2.
[[nodiscard]] constexpr bool is_token_char(char c) {
  constexpr std::string_view kPunctuation = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kPunctuation.contains(c);
}
[[nodiscard]] inline bool is_token(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_token_char); }

// Of ASCII letters; whatever the locale is.
[[nodiscard]] constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

[[nodiscard]] inline std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(text, out.begin(), [](char c) { return lower(c); });
  return out;
}

[[nodiscard]] inline bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace caisson::http
