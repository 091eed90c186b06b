// The stages between a parsed policy file and a frozen Policy, inside launcher/policy only: validate (fields.h), then
// check_file, check_widening, merge, build, check_policy. Each adds what it finds to Problems and assumes that the stage before
// found nothing.
#pragma once

#include <map>
#include <string>

#include "launcher/compiler/fields.h"

namespace caisson::policy {

using Sets = std::map<std::string, SyscallSet>;

// A list of an object, or an empty one: never a copy, which value() makes.
[[nodiscard]] inline const json::Value& list_of(const json::Value& object, const char* key) {
  static const json::Value kEmpty = json::Value::array();
  const auto it = object.find(key);
  return it == object.end() ? kEmpty : *it;
}

enum class Kind { base, domain, preset };
// Duplicate grants, unknown fields in "why", "extends", and what a preset may not hold.
void check_file(const Source& source, Kind kind, Problems& problems);
// One field, or one grant, in which a document gives more than its parent.
struct Widening {
  std::string field;    // as in weaken
  std::string pointer;  // where it stands
  std::string what;
};
[[nodiscard]] std::vector<Widening> widenings(const json::Value& parent, const json::Value& child,
                                              const std::string& parent_name);
// Every field in which `child` gives more than `parent` needs a weaken entry, and no other field may have one.
void check_widening(const json::Value& parent, const Source& child, const std::string& parent_name, Problems& problems);
// Grants by path, maps by key, objects by field; anything else is replaced. A reason does not outlive its value.
[[nodiscard]] json::Value merge(json::Value base, const json::Value& child);
// `doc` with the preset over it: the stricter of the two in every field; more only where the preset weakens base, and never
// where the domain itself took away from base.
[[nodiscard]] json::Value apply_preset(const json::Value& base, json::Value doc, const json::Value& preset);
// `doc` with the weaken entries alone that it still needs against base.
[[nodiscard]] json::Value settle(const json::Value& base, json::Value doc);
[[nodiscard]] json::Value with_defaults(json::Value doc);
[[nodiscard]] Policy build(const json::Value& merged);
// What only the whole shows: paths that collide, unknown sets. Fills policy.sets.
void check_policy(Policy& policy, const Source& source, const Sets& sets, Problems& problems);

// The value at a pointer, or nullptr.
[[nodiscard]] const json::Value* at(const json::Value& doc, std::string_view pointer);
// `child` gives more than `parent` of a field.
[[nodiscard]] bool wider(const Field& field, const json::Value& parent, const json::Value& child);
[[nodiscard]] unsigned octal(const json::Value& text);
[[nodiscard]] bool has(const json::Value& list, const json::Value& item);

[[nodiscard]] SyscallSet build_set(const Source& source, const std::string& name, Problems& problems);
// Resolves policy.syscalls into policy.sets.
void resolve_sets(Policy& policy, const Source& source, const Sets& sets, Problems& problems);

}  // namespace caisson::policy
