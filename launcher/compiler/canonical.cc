#include "launcher/compiler/canonical.h"

#include "launcher/common/base/hash.h"
#include "launcher/common/policy/rows.h"
#include "launcher/compiler/egress.h"
#include "launcher/compiler/secrets.h"

namespace caisson::policy {
namespace {

using json::Value;

Value json_of(const Row&, const Grant& g) {
  const auto access = word(words(g.access), static_cast<std::size_t>(g.access));
  Value out{{"path", g.path}, {"access", access}, {"execute", g.execute}, {"required", g.required}};
  if (g.source != g.path) out["source"] = g.source;
  if (g.mounted) out["mounted"] = true;
  if (!g.description.empty()) out["description"] = g.description;
  return out;
}

template <class T>
Value json_of(const Row& row, const T& value) {
  if constexpr (std::is_enum_v<T>) return word(words(value), static_cast<std::size_t>(value));
  else if constexpr (std::same_as<T, unsigned>) return octal_text(value);
  else if constexpr (std::same_as<T, bool>) return row.words.empty() ? Value(value) : Value(word(row.words, value ? 1 : 0));
  else if constexpr (std::same_as<T, std::string>) return row.widens == Widens::rules ? egress_json(value) : Value(value);
  else return value;
}
template <class List>
  requires(std::same_as<List, std::set<Mechanism>> || std::same_as<List, std::vector<Grant>>)
Value json_of(const Row& row, const List& list) {
  Value out = Value::array();
  for (const auto& item : list) out.push_back(json_of(row, item));
  return out;
}
Value json_of(const Row&, const std::vector<SyscallSet>& sets) {
  Value out;
  for (const SyscallSet& set : sets) out[set.name] = set.digest;  // what they say is in the files
  return out;
}

}  // namespace

Value to_json(const Policy& p) {
  Value out;
  each_row(p, [&out](const Row& row, const auto& value) {
    if (!row.pointer.empty()) out[Value::json_pointer(std::string(row.pointer))] = json_of(row, value);
  });
  // Absent, so that a policy without them has the digest that it had before there was such a field.
  if (p.preset.empty()) out.erase("preset");
  if (p.published_ports.empty()) out.erase("published_ports");
  if (p.api.empty()) out.erase("api");
  if (goes_out(p.network)) out["egress_limits"] = egress_limits_json(p.egress);
  else out.erase("egress");
  if (std::string ask = egress_ask_word(p.egress); !ask.empty()) out["egress_ask"] = std::move(ask);
  if (egress_auth_cmd(p.egress)) out["egress_auth_cmd"] = true;
  if (json::Value upstream = upstream_json(p.egress); !upstream.empty()) out["upstream"] = std::move(upstream);
  if (json::Value secrets = secrets_json(p.egress); !secrets.empty()) out["secrets"] = std::move(secrets);
  return out;
}

std::string digest_of(const Policy& policy) { return sha256_hex(json::dump(to_json(policy))); }

std::string octal_text(unsigned value) {
  return {static_cast<char>('0' + (value >> 6 & 7)), static_cast<char>('0' + (value >> 3 & 7)),
          static_cast<char>('0' + (value & 7))};
}

Grant build_grant(const json::Value& object) {
  Grant grant;
  grant.path = object["path"].get<std::string>();
  grant.source = object.value("source", grant.path);
  grant.access = object.value("access", "read") == "read" ? Access::read : Access::read_write;
  grant.execute = object.value("execute", false);
  grant.required = object.value("required", true);
  grant.description = object.value("description", "");
  if (const auto why = object.value("why", ""); !why.empty()) grant.description += (grant.description.empty() ? "" : ": ") + why;
  return grant;
}

}  // namespace caisson::policy
