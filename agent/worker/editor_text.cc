#include "agent/worker/editor_text.h"

#include <algorithm>
#include <cstdio>

namespace caisson::worker::editor {
namespace {

// The byte position after the first `most` characters of UTF-8 text.
std::size_t character_end(std::string_view text, std::size_t most) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at)
    if ((text[at] & '\xc0') != '\x80' && seen++ == most) break;
  return at;
}

}  // namespace

std::string clipped(std::string_view text, std::string_view notice) {
  const std::size_t end = character_end(text, kMostShown);
  std::string out(text.substr(0, end));
  if (end < text.size()) out += notice;
  return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t from = 0;;) {
    const std::size_t end = text.find('\n', from);
    out.push_back(text.substr(from, end == std::string_view::npos ? end : end - from));
    if (end == std::string_view::npos) return out;
    from = end + 1;
  }
}

std::string joined(const std::vector<std::string_view>& lines, std::int64_t from, std::int64_t to) {
  std::string out;
  const auto size = static_cast<std::int64_t>(lines.size());
  from = std::clamp<std::int64_t>(from, 0, size);
  for (std::int64_t i = from; i < std::clamp<std::int64_t>(to, 0, size); ++i) {
    if (i > from) out += '\n';
    out += lines[static_cast<std::size_t>(i)];
  }
  return out;
}

std::string numbered(std::string_view text, const std::string& what, std::int64_t first_line) {
  const std::string shown = clipped(text, kFileNotice);
  std::string out = "Here's the result of running `cat -n` on " + what + ":\n";
  char number[32];
  for (const std::string_view line : lines_of(shown)) {
    std::snprintf(number, sizeof number, "%6lld\t", static_cast<long long>(first_line++));
    out.append(number).append(line).append("\n");
  }
  return out;
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string invalid(std::string_view parameter, const std::string& value, const std::string& why) {
  return "Invalid `" + std::string(parameter) + "` parameter: " + value + ". " + why;
}

std::string required(std::string_view parameter, std::string_view command) {
  return "Parameter `" + std::string(parameter) + "` is required for command: " + std::string(command) + ".";
}

std::string number_list(const std::vector<std::int64_t>& numbers) {
  std::string out = "[";
  for (const std::int64_t number : numbers) out += (out.size() > 1 ? ", " : "") + std::to_string(number);
  return out + "]";
}

}  // namespace caisson::worker::editor
