// A command's flags and words, parsed strictly against a table: unknown flags and missing values are errors that name
// what was meant. "--flag value" and "--flag=value"; "--" ends the flags.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/result.h"

namespace caisson::cli {

struct Flag {
  std::string_view name;        // "--since"
  std::string_view short_name;  // "-n", or empty
  bool value = false;           // takes one
};

class Args {
 public:
  [[nodiscard]] static Result<Args> parse(std::span<const std::string> args, std::span<const Flag> flags, std::size_t least_words,
                                          std::size_t most_words);

  [[nodiscard]] bool has(std::string_view name) const { return values_.contains(name); }
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> last(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  [[nodiscard]] std::size_t before() const { return before_; }  // of these, before "--"

 private:
  std::multimap<std::string, std::string, std::less<>> values_;
  std::vector<std::string> words_;
  std::size_t before_ = 0;
};

}  // namespace caisson::cli
