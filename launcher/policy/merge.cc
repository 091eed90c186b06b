// base.json + <domain>.json -> Policy, and what of a file is wider than what it extends.
#include <algorithm>
#include <charconv>
#include <set>

#include "launcher/policy/nearest.h"
#include "launcher/policy/stages.h"

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
  }
  return true;
}

// A preset can neither be narrower nor wider in a field that knows no such order: it may not hold it.
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
    problems.add(source, "/syscalls", "field 'allow' is missing: no program runs without");

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
  for (const Field& field : policy_fields()) {
    if (field.widens == Widens::never || field.widens == Widens::grants) continue;
    const std::string pointer(field.pointer);
    const Value *before = at(parent, pointer), *after = at(child, pointer);
    if (before != nullptr && after != nullptr && wider(field, *before, *after))
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
                   w.what + "; if that is meant, give the reason in weaken: {\"field\": \"" + w.field + "\", \"why\": \"…\"}");
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
  p.description = m.value("description", "");
  m["why"].get_to(p.why);
  for (const Value& w : m["weaken"]) p.weaken[w["field"].get<std::string>()] = w["why"].get<std::string>();
  p.min_tier = *tier_from(m["min_tier"].get<std::string>());
  for (const Value& name : m["require"]) p.require.insert(*mechanism_from(name.get<std::string>()));
  for (const Value& name : m["disable"]) p.disable.insert(*mechanism_from(name.get<std::string>()));
  for (const Value& grant : m["grants"]) p.grants.push_back(build_grant(grant));
  std::ranges::sort(p.grants, {}, &Grant::path);
  m["hide"].get_to(p.hide);
  for (const auto& [path, content] : m["files"].items()) {
    std::string& text = p.files[path];
    if (content.is_string()) text = content.get<std::string>();
    else
      for (const Value& line : content) text += line.get<std::string>() + "\n";
  }
  m["protect"].get_to(p.protect);
  m["protect_home"].get_to(p.protect_home);
  m["links"].get_to(p.links);
  m["devices"].get_to(p.devices);
  p.home = m["home"] == "private" ? Scope::private_ : Scope::workspace;
  p.tmp = m["tmp"] == "private" ? Scope::private_ : Scope::workspace;
  m["home_path"].get_to(p.home_path);
  m["exec_writable"].get_to(p.exec_writable);
  m["system_packages"].get_to(p.system_packages);
  m["hostname"].get_to(p.hostname);
  m["proc_shared_fallback"].get_to(p.proc_shared_fallback);
  p.network = m["network"] == "none" ? Network::none : Network::loopback;
  for (const LimitRow& row : kLimits) p.limits.*row.member = m["limits"][row.name].get<std::uint64_t>();
  m["env"]["set"].get_to(p.env.set);
  m["env"]["client_deny"].get_to(p.env.client_deny);
  m["syscalls"]["allow"].get_to(p.syscalls.allow);
  m["syscalls"]["deny"].get_to(p.syscalls.deny);
  if (p.system_packages && std::ranges::find(p.syscalls.allow, kPackagesSet) == p.syscalls.allow.end())
    p.syscalls.allow.emplace_back(kPackagesSet);
  m["audit"]["denials"].get_to(p.audit.denials);
  p.audit.paths = m["audit"]["paths"] == "observe";
  m["audit"]["max_bytes"].get_to(p.audit.max_bytes);
  m["audit"]["keep_days"].get_to(p.audit.keep_days);
  p.audit.on_full = m["audit"]["on_full"] == "stderr" ? OnFull::stderr_ : OnFull::stop;
  p.umask = octal(m["umask"]);
  return p;
}

}  // namespace caisson::policy
