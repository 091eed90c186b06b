// What a session sees, by name: whether a path would be refused by its mount tree and Landlock, as far as its text can tell.
// Nothing is looked up: links that the session made, files that are not there and file modes are not known here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/tables/path_calls.h"

namespace caisson::auditor {

struct Denied {
  const char* error;  // what the kernel is expected to say, unless something else comes first
  const char* why;
};

class View {
 public:
  // The text behind a list of refusals (common/wire/auditor_protocol.h); what is cut short in it is left out.
  [[nodiscard]] static View parse(std::string_view text);

  // An absolute path without `.`, `..`, doubled slashes and the policy's links; `path` relative to `base`.
  [[nodiscard]] std::string normal(std::string_view path, std::string_view base) const;
  // nullptr: the walls let it through. `path` as normal() gives it.
  [[nodiscard]] const Denied* judge(Want want, const std::string& path) const;

 private:
  struct Place {
    bool write = false, execute = false, hidden = false, by_landlock = false;
  };
  std::map<std::string, Place, std::less<>> places_;
  std::map<std::string, std::string, std::less<>> links_;
};

// What a call wants of its path, its flags considered: look, execute, create, remove, change or connect.
[[nodiscard]] Want wanted(Want want, std::uint64_t flags);

}  // namespace caisson::auditor
