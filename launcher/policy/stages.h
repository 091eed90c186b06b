// The stages between a parsed policy file and a frozen Policy, inside launcher/policy only: validate (fields.h), then
// check_file, check_widening, merge, build, check_policy. Each adds what it finds to Problems and assumes that the stage before
// found nothing.
#pragma once

#include <map>
#include <string>

#include "launcher/policy/fields.h"

namespace caisson::policy {

using Sets = std::map<std::string, SyscallSet>;

// A list of an object, or an empty one: never a copy, which value() makes.
[[nodiscard]] inline const json::Value& list_of(const json::Value& object, const char* key) {
  static const json::Value kEmpty = json::Value::array();
  const auto it = object.find(key);
  return it == object.end() ? kEmpty : *it;
}

// Duplicate grants, unknown fields in "why", "extends".
void check_file(const Source& source, bool is_base, Problems& problems);
// Every field in which `child` gives more than `parent` needs a weaken entry, and no other field may have one.
void check_widening(const json::Value& parent, const Source& child, Problems& problems);
// Grants by path, maps by key, objects by field; anything else is replaced.
[[nodiscard]] json::Value merge(json::Value base, const json::Value& child);
[[nodiscard]] json::Value with_defaults(json::Value doc);
[[nodiscard]] Policy build(const json::Value& merged);
[[nodiscard]] Grant build_grant(const json::Value& object);
// What only the whole shows: paths that collide, unknown sets. Fills policy.sets.
void check_policy(Policy& policy, const Source& source, const Sets& sets, Problems& problems);

[[nodiscard]] SyscallSet build_set(const Source& source, const std::string& name, Problems& problems);
// Resolves policy.syscalls into policy.sets.
void resolve_sets(Policy& policy, const Source& source, const Sets& sets, Problems& problems);

// The grant that rules `path`: the longest at or above it; nullptr: none.
[[nodiscard]] const Grant* ruling_grant(const std::vector<Grant>& grants, std::string_view path);
// Whether `inner`, at or below `outer`, gives no more than `outer` does: access, execution and the same source.
[[nodiscard]] bool no_more_than(const Grant& inner, const Grant& outer);

}  // namespace caisson::policy
