// The sentences of str_replace_editor, and the form in which it shows text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::worker::editor {

inline constexpr std::size_t kMostShown = 16'000;  // characters
inline constexpr std::int64_t kSnippetLines = 4;   // around an edit

// Numbered lines, cut to the length that is shown. what: a path, or "a snippet of <path>".
[[nodiscard]] std::string numbered(std::string_view text, const std::string& what, std::int64_t first_line = 1);
[[nodiscard]] std::string clipped(std::string_view text, std::string_view notice);

[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);
// Lines from..to of them (from 0, `to` not included, both clamped), joined.
[[nodiscard]] std::string joined(const std::vector<std::string_view>& lines, std::int64_t from, std::int64_t to);
[[nodiscard]] std::string_view stripped(std::string_view text);

[[nodiscard]] std::string invalid(std::string_view parameter, const std::string& value, const std::string& why);
[[nodiscard]] std::string required(std::string_view parameter, std::string_view command);
[[nodiscard]] std::string number_list(const std::vector<std::int64_t>& numbers);  // [1, 2]

inline constexpr std::string_view kFileNotice =
    "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. You should retry this "
    "tool after "
    "you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";
inline constexpr std::string_view kDirectoryNotice =
    "<response clipped><NOTE>Due to the max output limit, only part of this directory has been shown to you. You should use `ls "
    "-la` "
    "instead to view large directories incrementally.</NOTE>";
inline constexpr std::string_view kReview =
    "Review the changes and make sure they are as expected. Edit the file again if necessary.";
inline constexpr std::string_view kReviewInsert =
    "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again "
    "if "
    "necessary.";

}  // namespace caisson::worker::editor
