// The launcher's side of caisson-protect, which makes what a policy's `protect` names read-only in the mounts of one session
// (protect/main.cc describes the protocol). The launcher reads the result back from the kernel (mount_facts.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launcher/common/base/fd.h"
#include "launcher/common/confine/plan.h"

namespace caisson::confine {

// Of one session. Nothing of it is there where the plan protects nothing.
struct Protection {
  Fd program, notes;
  std::map<char, std::vector<std::string>> told;  // what it wrote, by letter

  [[nodiscard]] static Result<Protection> prepare(const Plan& plan);
  // What it wrote in `runs` runs. Errors: it did not come to its end; a sentence of its own, where it has one.
  [[nodiscard]] Status read(std::size_t runs);
  [[nodiscard]] nlohmann::json named() const;  // {"count", "paths"}: of what is protected, the first paths
  [[nodiscard]] nlohmann::json auto_run();     // the same of what is new, once it has run at the end; {"unknown": why}
};

}  // namespace caisson::confine
