// Reads a policy directory (base.json, <domain>.json, seccomp/<set>.json, presets/<preset>.json) into frozen Policies. All
// problems of all files are collected, so that one run shows everything that is wrong.
#pragma once

#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/policy/in_force.h"

namespace caisson::policy {

struct Choice {
  std::string only;    // no other domain is read: what one command needs, faster
  std::string preset;  // laid over every domain; empty: none
  // What the operator mounted (compiler/volumes.h): granted to every domain that shares the workspace's home, where its policy,
  // preset included, does not itself say something of the place.
  std::vector<Grant> mounts = {};
  std::string run = "/run/caisson";  // the launcher's own directory, where the stores of certificates are (secrets.h)
  bool authorities = false;  // the operator has some of their own (common/egress/trust.h): whatever goes out believes them
};

// Every *.json of `directory` but base.json, which the domains extend, and schema.json is a domain.
[[nodiscard]] LoadResult load_directory(const std::string& directory, const Choice& choice = {});

// A seccomp set that is in no policy directory: what a program of ours allows itself. Errors: invalid_argument, with the first
// problem.
[[nodiscard]] Result<SyscallSet> parse_set(const std::string& name, json::Value doc);

}  // namespace caisson::policy
