// base.json + <domain>.json -> Policy, and the fields in which a file is wider than the file that it extends.
#include <algorithm>
#include <charconv>
#include <set>

#include "launcher/compiler/canonical.h"
#include "launcher/compiler/egress.h"
#include "launcher/compiler/mechanism_names.h"
#include "launcher/compiler/nearest.h"
#include "launcher/compiler/secrets.h"
#include "launcher/compiler/stages.h"

namespace caisson::policy {
namespace {

using json::Value;

std::uint64_t rank(const Field& field, const Value& value) {
  if (field.type == Type::choice) {
    const auto choices = split(field.allowed);
    return static_cast<std::uint64_t>(std::ranges::find(choices, value.get<std::string>()) - choices.begin());
  }
  return value.is_boolean() ? value.get<bool>() : value.get<std::uint64_t>();
}

std::string brief(const Value& value) {
  const std::string text = json::dump(value);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

// The value that a validated file has for a row.
template <class T>
void read(const Row& row, const Value& value, T& out) {
  if constexpr (std::is_enum_v<T>) {
    const auto all = split(words(T{}));
    out = static_cast<T>(std::ranges::find(all, value.get<std::string>()) - all.begin());
  } else if constexpr (std::same_as<T, bool>) {
    out = value.is_boolean() ? value.get<bool>() : value == word(row.words, 1);
  } else if constexpr (std::same_as<T, unsigned>) {
    out = octal(value);
  } else if constexpr (!std::same_as<T, std::vector<SyscallSet>>) {
    value.get_to(out);
  }
}
// egress is made of several fields: build().
void read(const Row& row, const Value& value, std::string& out) {
  if (row.widens != Widens::rules) value.get_to(out);
}
void read(const Row&, const Value& names, std::set<Mechanism>& out) {
  for (const Value& name : names) out.insert(*mechanism_from(name.get<std::string>()));
}
void read(const Row&, const Value& grants, std::vector<Grant>& out) {
  for (const Value& grant : grants) out.push_back(build_grant(grant));
}
// A text may be given as its lines, and reasons as a list of fields with theirs.
void read(const Row&, const Value& entries, Map& out) {
  if (entries.is_array())
    for (const Value& entry : entries) out[entry["field"].get<std::string>()] = entry["why"].get<std::string>();
  else
    for (const auto& [key, content] : entries.items()) {
      std::string& text = out[key];
      if (content.is_string()) text = content.get<std::string>();
      else
        for (const Value& line : content) text += line.get<std::string>() + "\n";
    }
}

}  // namespace

const Value* at(const Value& doc, std::string_view pointer) {
  const nlohmann::json::json_pointer where{std::string(pointer)};
  return doc.contains(where) ? &doc.at(where) : nullptr;
}
unsigned octal(const Value& text) {
  const auto& digits = text.get_ref<const std::string&>();
  unsigned out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out, 8);
  return out;
}

bool has(const Value& list, const Value& item) { return std::ranges::find(list, item) != list.end(); }

bool wider(const Field& field, const Value& parent, const Value& child) {
  switch (field.widens) {
    case Widens::made:
    case Widens::never:
    case Widens::grants:
    case Widens::joins:
      return false;
    case Widens::larger:
      return rank(field, child) > rank(field, parent);
    case Widens::smaller:
      return rank(field, child) < rank(field, parent);
    case Widens::added:
      return std::ranges::any_of(child, [&](const Value& v) { return !has(parent, v); });
    case Widens::removed:
      if (field.type == Type::octal) return (octal(parent) & ~octal(child)) != 0;
      return std::ranges::any_of(parent, [&](const Value& v) { return !has(child, v); });
    case Widens::rules:
      return allows_more(parent, child);
  }
  return true;
}

// A field without an order from narrow to wide cannot be in a preset.
static void check_preset(const Source& source, Problems& problems) {
  for (const Field& field : policy_fields()) {
    const bool other = field.pointer == "/description" || field.pointer == "/why" || field.pointer == "/extends" ||
                       field.pointer.starts_with("/weaken");
    if (field.widens == Widens::never && field.type != Type::object && !other && !field.pointer.contains('*') &&
        at(source.doc, field.pointer) != nullptr)
      problems.add(source, std::string(field.pointer),
                   "cannot be in a preset: a preset applies to every domain, and this field has no stricter value");
  }
}

void check_file(const Source& source, Kind kind, Problems& problems) {
  const Value& doc = source.doc;
  if (kind == Kind::preset) check_preset(source, problems);
  if (kind == Kind::base && doc.contains("extends")) problems.add(source, "/extends", "base.json extends nothing");
  if (kind == Kind::domain && !doc.contains("extends"))
    problems.add(source, "", "field 'extends' is missing: \"base\", or another domain's name");
  if (kind == Kind::base && (!at(doc, "/syscalls/allow")))
    problems.add(source, "/syscalls", "field 'allow' is missing: no program can run without it");

  check_egress(source, problems);
  check_secrets(source, problems);
  std::map<std::string, std::size_t> seen;
  const json::Value& grants = list_of(doc, "grants");
  for (std::size_t i = 0; i < grants.size(); ++i) {
    const auto path = grants[i]["path"].get<std::string>();
    if (const auto [it, fresh] = seen.emplace(path, i); !fresh)
      problems.add(source, "/grants/" + std::to_string(i) + "/path",
                   "is granted twice: " + quote(path) + ", first in /grants/" + std::to_string(it->second));
  }
  std::vector<std::string> known;
  for (const Field& field : policy_fields()) known.emplace_back(field.pointer);
  const Value whys = doc.value("why", Value::object());  // outlives the loop: items() only refers to it
  for (const auto& [field, why] : whys.items())
    if (find_field(policy_fields(), field) == nullptr)
      problems.add(source, "/why/" + json::pointer_token(field), "no such field: " + quote(field), nearest(field, known));
}

std::vector<Widening> widenings(const Value& parent, const Value& child, const std::string& parent_name) {
  std::vector<Widening> out;
  const Value* network = at(parent, "/network");
  const bool way_out = network != nullptr && *network != "none" && *network != "loopback";
  for (const Field& field : policy_fields()) {
    if (field.widens == Widens::never || field.widens == Widens::grants) continue;
    // Of a parent without a way out, these permit nothing yet: the entry of /network speaks for the child's.
    if (!way_out && (field.pointer.starts_with("/egress") || field.pointer == "/secrets")) continue;
    const std::string pointer(field.pointer);
    const Value *before = at(parent, pointer), *after = at(child, pointer);
    const Value* mode = at(child, "/network") != nullptr ? at(child, "/network") : network;
    const bool unlimited = field.widens == Widens::rules && mode != nullptr && permits_all(*mode) && before != nullptr &&
                           after != nullptr && drops_limit(*before, *after);
    if (before != nullptr && after != nullptr && (unlimited || wider(field, *before, *after)))
      out.push_back(
          {pointer, pointer, "gives more than " + parent_name + ": " + brief(*after) + " instead of " + brief(*before)});
  }
  if (!parent.contains("grants")) return out;
  std::vector<Grant> given;
  for (const Value& g : parent["grants"]) given.push_back(build_grant(g));
  const Value& grants = list_of(child, "grants");
  for (std::size_t i = 0; i < grants.size(); ++i) {
    const Grant grant = build_grant(grants[i]);
    const Grant* outer = ruling_grant(given, grant.path);
    if (outer != nullptr && no_more_than(grant, *outer)) continue;
    out.push_back({"/grants" + grant.path, "/grants/" + std::to_string(i),
                   outer == nullptr
                       ? "grants " + quote(grant.path) + ", which " + parent_name + " does not give"
                       : "gives more of " + quote(grant.path) + " than " + parent_name + "'s grant of " + quote(outer->path)});
  }
  return out;
}

void check_widening(const Value& parent, const Source& child, const std::string& parent_name, Problems& problems) {
  const json::Value& weaken = list_of(child.doc, "weaken");
  std::vector<std::string> known;
  for (const Widening& w : widenings(parent, child.doc, parent_name)) {
    known.push_back(w.field);
    if (std::ranges::none_of(weaken, [&](const Value& entry) { return entry["field"] == w.field; }))
      problems.add(child, w.pointer,
                   w.what + "; if this is intended, give a reason in weaken: {\"field\": \"" + w.field + "\", \"why\": \"…\"}");
  }
  std::set<std::string> listed;
  for (std::size_t i = 0; i < weaken.size(); ++i) {
    const auto field = weaken[i]["field"].get<std::string>();
    const std::string pointer = "/weaken/" + std::to_string(i) + "/field";
    if (!listed.insert(field).second) problems.add(child, pointer, "is listed twice: " + quote(field));
    else if (std::ranges::find(known, field) == known.end())
      problems.add(child, pointer, "weakens nothing: this file gives no more of " + quote(field) + " than " + parent_name,
                   nearest(field, known));
  }
}

Value settle(const Value& base, Value doc) {
  std::set<std::string> needed;
  for (const Widening& w : widenings(base, doc, "base")) needed.insert(w.field);
  for (const Value& entry : list_of(base, "weaken")) needed.insert(entry["field"].get<std::string>());
  Value kept = Value::array();
  for (const Value& entry : list_of(doc, "weaken"))
    if (needed.contains(entry["field"].get<std::string>())) kept.push_back(entry);
  doc["weaken"] = std::move(kept);
  return doc;
}

Value merge(Value base, const Value& child) {
  if (base.contains("why"))
    for (const Field& field : policy_fields())
      if (at(child, field.pointer) != nullptr) base["why"].erase(std::string(field.pointer));
  for (const auto& [key, value] : child.items()) {
    const Field* field = find_field(policy_fields(), "/" + key);
    if (key == "grants") {
      Value& grants = base["grants"];
      for (const Value& grant : value) {
        const auto same = std::ranges::find_if(grants, [&](const Value& g) { return g["path"] == grant["path"]; });
        if (same == grants.end()) grants.push_back(grant);
        else *same = grant;
      }
    } else if (key == "weaken") {
      for (const Value& entry : value) base["weaken"].push_back(entry);
    } else if (field->widens == Widens::rules) {
      base[key] = merge_egress(list_of(base, "egress"), value);
    } else if (field->widens == Widens::joins) {
      for (const Value& item : value)
        if (!base.contains(key) || !has(base[key], item)) base[key].push_back(item);
    } else if (field->type == Type::object) {
      for (const auto& [name, item] : value.items())
        if (find_field(policy_fields(), "/" + key + "/" + name)->type == Type::map) base[key][name].update(item);
        else base[key][name] = item;
    } else if (field->type == Type::map || field->type == Type::content) {
      base[key].update(value);
    } else {
      base[key] = value;
    }
  }
  return base;
}

Value with_defaults(Value doc) {
  for (const Field& field : policy_fields()) {
    if (field.pointer.find('*') != std::string_view::npos || field.fallback.empty() || field.fallback == kRequired) continue;
    const nlohmann::json::json_pointer where{std::string(field.pointer)};
    if (!doc.contains(where)) doc[where] = Value::parse(field.fallback);
  }
  return doc;
}

Policy build(const Value& merged) {
  const Value m = with_defaults(merged);
  Policy p;
  each_row(p, [&m](const Row& row, auto& value) {
    if (const Value* given = in_files(row) ? at(m, row.pointer) : nullptr) read(row, *given, value);
  });
  p.egress = compile_egress(m, p.network);
  if (goes_out(p.network)) p.files.insert_or_assign(kResolverFile, kResolver);  // in place of the inherited one, without names
  std::ranges::sort(p.grants, {}, &Grant::path);
  if (p.system_packages && !std::ranges::count(p.syscalls.allow, kPackagesSet)) p.syscalls.allow.emplace_back(kPackagesSet);
  return p;
}

}  // namespace caisson::policy
