// A policy as facts in plain words: what a session of the domain reads, writes, runs, reaches and uses, what is recorded of it
// and where it starts; how two policies differ in these terms; and a posture score whose every point is accounted for.
// Pure; for the caisson command, not the launcher.
#pragma once

#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/tables/posture.h"
#include "launcher/compiler/load.h"

namespace caisson::policy {

struct Fact {
  std::string topic;  // "reads", "writes", "runs", "reaches", "is reached", "uses", "is recorded", "starts"
  std::string name;   // a path, a limit, a set of system calls
  std::string value;
  std::string why;
};
[[nodiscard]] std::vector<Fact> facts(const Policy& policy);
// Why a field has its value, or "".
[[nodiscard]] std::string reason_of(const Policy& policy, const std::string& field);

struct Difference {
  std::string topic, name;
  std::string before, after;  // empty: not there
  std::string why;            // of what is there after; else of what was
};
[[nodiscard]] std::vector<Difference> differences(const Policy& before, const Policy& after);

// By the rules of common/tables/posture.h.
[[nodiscard]] std::vector<Deduction> deductions(const Policy& policy);

// The names of presets/*.json of a policy directory, sorted; none where there is no such folder.
[[nodiscard]] std::vector<std::string> json_names(const std::string& folder);
[[nodiscard]] inline std::vector<std::string> preset_names(const std::string& directory) {
  return json_names(directory + "/presets");
}
// Tables of domains and of presets for policies/README.md. presets: name (empty: none) and the domains under it.
[[nodiscard]] std::string presets_text(const std::vector<std::pair<std::string, PolicySet>>& presets);

}  // namespace caisson::policy
