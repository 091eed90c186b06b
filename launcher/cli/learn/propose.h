// From what a command did to the smallest policy of a domain that lets it do so again. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/learn/accesses.h"
#include "launcher/common/base/json.h"
#include "launcher/common/policy/policy.h"

namespace caisson::cli::learn {

struct Proposal {
  std::vector<policy::Grant> grants;            // beyond the domain's
  std::map<std::string, std::uint64_t> limits;  // lower than the domain's
  std::vector<std::string> sets;                // of system calls, fewer than the domain's; empty: all of them
  bool network_none = false;                    // it used no network, the domain has one
  std::vector<std::string> notes;               // what was seen and is not proposed, and what could not be seen
};

// covered(): what every session of the domain has at this path without a further grant. nullptr: nothing.
struct Cover {
  bool write = false, execute = false;
};
[[nodiscard]] std::optional<Cover> covered(const policy::Policy& policy, const std::string& path);

[[nodiscard]] std::vector<std::string> use_names(unsigned use);  // of Use: "read", "listed", ...
[[nodiscard]] Proposal propose(const policy::Policy& policy, const Accesses& seen);

// Directories of so many things that none is ever granted as a whole: /, /etc, /home, ... and the homes below /home.
[[nodiscard]] bool is_broad(const policy::Policy& policy, const std::string& path);

// The policy file: extends `domain`, each grant with its reason. command: for the reasons.
[[nodiscard]] json::Value policy_file(const policy::Policy& policy, const Proposal& proposal, const std::string& command);
// The same as lines "+ grant read-write /srv/data" and "- limits/processes 512 -> 32".
[[nodiscard]] std::string difference(const policy::Policy& policy, const Proposal& proposal);

// What the command could do when it was learnt and was refused, or did not find, under the learnt policy; as lines.
[[nodiscard]] std::vector<std::string> lost(const Accesses& learnt, const Accesses& again);

}  // namespace caisson::cli::learn
