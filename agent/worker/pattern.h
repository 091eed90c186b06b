// Glob patterns over relative paths: * and ? within a name, ** across directories, [a-z] [!a-z], {a,b}. Matching takes time
// proportional to pattern times name, for any pattern.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::worker {

// One name against one segment of a pattern.
[[nodiscard]] bool match_name(std::string_view pattern, std::string_view name);

class Pattern {
 public:
  // `a/**/*.{c,h}`; alternatives beyond a bound are taken literally.
  explicit Pattern(std::string_view text);

  [[nodiscard]] bool matches(std::string_view relative_path) const;
  // The rule for exclusions: a pattern without a slash matches any name in the path, one with a slash the path or a directory
  // above it.
  [[nodiscard]] bool excludes(std::string_view relative_path) const;
  [[nodiscard]] bool names_hidden() const;  // a segment begins with a dot
  [[nodiscard]] bool has_slash() const { return has_slash_; }
  // The greatest depth of a match; 0: any depth.
  [[nodiscard]] std::size_t depth() const;

 private:
  using Segments = std::vector<std::string>;
  std::vector<Segments> alternatives_;
  bool has_slash_ = false;
};

[[nodiscard]] std::vector<std::string_view> split_path(std::string_view path);

}  // namespace caisson::worker
