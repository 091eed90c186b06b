// Converts other programs' files to a policy: what can be expressed exactly, and a line for everything else. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/policy/policy.h"

namespace caisson::cli {

struct Imported {
  json::Value document;             // a file of the policy directory
  std::vector<std::string> report;  // what has no counterpart, and what is stricter than it was
};

// A seccomp profile of Docker or of the OCI runtime specification -> a set. refused: calls that the shipped policies refuse by
// name. Errors: it allows by default, or is none.
[[nodiscard]] Result<Imported> import_seccomp(const json::Value& profile, const std::string& name,
                                              const std::vector<std::string>& refused);
// Settings of Anthropic's sandbox-runtime -> a domain over `base`.
[[nodiscard]] Result<Imported> import_srt(const json::Value& settings, const policy::Policy& base);

}  // namespace caisson::cli
