#include "agent/worker/pattern.h"

#include <algorithm>

namespace caisson::worker {
namespace {

constexpr std::size_t kMostAlternatives = 64;

// Length of the UTF-8 character that begins `text`, cut at the end of `text`.
std::size_t character(std::string_view text) {
  std::size_t n = 1;
  while (n < text.size() && n < 4 && (text[n] & '\xc0') == '\x80') ++n;
  return (text[0] & '\x80') == 0 ? 1 : n;
}

// [...] at the start of `pattern`: its length, or 0 when it is not closed and stands for itself.
std::size_t match_class(std::string_view pattern, std::string_view c, bool& matched) {
  std::size_t at = 1;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  bool in = false;
  for (bool first = true; at < pattern.size() && (first || pattern[at] != ']'); first = false) {
    const std::size_t size = character(pattern.substr(at));
    const std::string_view low = pattern.substr(at, size);
    at += size;
    std::string_view high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      const std::size_t more = character(pattern.substr(at + 1));
      high = pattern.substr(at + 1, more);
      at += 1 + more;
    }
    in = in || (c >= low && c <= high && c.size() <= high.size());  // UTF-8 sorts as code points do
  }
  if (at >= pattern.size()) return 0;
  matched = in != negated;
  return at + 1;
}

void expand(std::string_view text, std::vector<std::string>& out) {
  int depth = 0;
  std::size_t open = std::string_view::npos;
  std::vector<std::size_t> commas;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && depth++ == 0) open = i;
    else if (text[i] == ',' && depth == 1) commas.push_back(i);
    else if (text[i] == '}' && depth > 0 && --depth == 0 && !commas.empty()) {
      commas.push_back(i);
      std::size_t from = open + 1;
      for (const std::size_t comma : commas) {
        if (out.size() >= kMostAlternatives) return;
        expand(std::string(text.substr(0, open)) + std::string(text.substr(from, comma - from)) + std::string(text.substr(i + 1)),
               out);
        from = comma + 1;
      }
      return;
    } else if (text[i] == '}' && depth == 0) {
      commas.clear();
    }
  }
  if (out.size() < kMostAlternatives) out.emplace_back(text);
}

// ** matches any number of names. Row by row: time is the product of both lengths.
bool match_segments(const std::vector<std::string>& pattern, const std::vector<std::string_view>& names) {
  std::vector<bool> row(names.size() + 1);
  row[0] = true;
  for (const std::string& segment : pattern) {
    if (segment == "**") {
      for (std::size_t i = 0; i < names.size(); ++i) row[i + 1] = row[i + 1] || row[i];
      continue;
    }
    for (std::size_t i = names.size(); i > 0; --i) row[i] = row[i - 1] && match_name(segment, names[i - 1]);
    row[0] = false;
  }
  return row[names.size()];
}

}  // namespace

std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> out;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0 && path.substr(0, end) != ".") out.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return out;
}

bool match_name(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, star_n = 0;
  while (n < name.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_n = n;
      continue;
    }
    if (p < pattern.size() && n < name.size()) {
      const std::size_t size = character(name.substr(n));
      bool matched = false;
      std::size_t used = 1;
      if (pattern[p] == '?') {
        matched = true;
      } else if (const std::size_t length = pattern[p] == '[' ? match_class(pattern.substr(p), name.substr(n, size), matched) : 0;
                 length > 0) {
        used = length;
      } else {
        const std::size_t escaped = pattern[p] == '\\' && p + 1 < pattern.size() ? 1 : 0;
        used = escaped + character(pattern.substr(p + escaped));
        matched = pattern.substr(p + escaped, used - escaped) == name.substr(n, size);
      }
      if (matched) {
        p += used;
        n += size;
        continue;
      }
    }
    // The last star takes one more character. Earlier stars never need to: the text after them has matched already.
    if (star == std::string_view::npos || star_n >= name.size()) return false;
    star_n += character(name.substr(star_n));
    n = star_n;
    p = star + 1;
  }
  return true;
}

Pattern::Pattern(std::string_view text) : has_slash_(text.contains('/')) {
  std::vector<std::string> plain;
  expand(text, plain);
  for (const std::string& one : plain) {
    Segments segments;
    for (const std::string_view segment : split_path(one)) segments.emplace_back(segment);
    alternatives_.push_back(std::move(segments));
  }
}

bool Pattern::matches(std::string_view relative_path) const {
  const auto names = split_path(relative_path);
  return std::ranges::any_of(alternatives_, [&](const Segments& s) { return match_segments(s, names); });
}

bool Pattern::excludes(std::string_view relative_path) const {
  auto names = split_path(relative_path);
  if (!has_slash_)
    return std::ranges::any_of(alternatives_, [&](const Segments& s) {
      return s.size() == 1 && std::ranges::any_of(names, [&](std::string_view name) { return match_name(s[0], name); });
    });
  for (; !names.empty(); names.pop_back())
    if (std::ranges::any_of(alternatives_, [&](const Segments& s) { return match_segments(s, names); })) return true;
  return false;
}

bool Pattern::names_hidden() const {
  return std::ranges::any_of(
      alternatives_, [](const Segments& s) { return std::ranges::any_of(s, [](const auto& name) { return name[0] == '.'; }); });
}

std::size_t Pattern::depth() const {
  std::size_t deepest = 0;
  for (const Segments& s : alternatives_) {
    if (std::ranges::find(s, "**") != s.end()) return 0;
    deepest = std::max(deepest, s.size());
  }
  return std::max<std::size_t>(deepest, 1);
}

}  // namespace caisson::worker
