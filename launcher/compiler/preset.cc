// Applies a preset to a domain: the demands of a field of work (finance, medicine, …) on every domain.
#include <algorithm>

#include "launcher/compiler/canonical.h"
#include "launcher/compiler/egress.h"
#include "launcher/compiler/stages.h"

namespace caisson::policy {
namespace {

using json::Value;

// Every item of `lists` that `keep` wants, once.
template <class Keep>
Value chosen(std::initializer_list<const Value*> lists, const Keep& keep) {
  Value out = Value::array();
  for (const Value* list : lists)
    for (const Value& item : *list)
      if (keep(item) && !has(out, item)) out.push_back(item);
  return out;
}

// One field of a domain (mine) under a preset, which may give more than base (it then has its weaken entry).
Value joined(const Field& field, const Value& base, const Value& mine, const Value& preset) {
  if (field.type == Type::octal) {
    return octal_text((octal(mine) | octal(preset)) & ~(octal(base) & ~octal(preset)));
  }
  if (field.widens == Widens::added)
    return chosen({&mine, &preset}, [&](const Value& v) { return has(preset, v) && (has(mine, v) || !has(base, v)); });
  if (field.widens == Widens::joins) return chosen({&mine, &preset}, [](const Value&) { return true; });
  if (field.widens == Widens::removed)
    return chosen({&mine, &preset}, [&](const Value& v) { return has(preset, v) || !has(base, v); });
  if (!wider(field, base, preset)) return wider(field, mine, preset) ? mine : preset;
  // More than base: but not where the domain took away from base itself.
  return wider(field, mine, base) || !wider(field, mine, preset) ? mine : preset;
}

std::string path_of(const Value& grant) { return grant["path"].get<std::string>(); }

// A right that the preset takes away from a path is taken away from all grants at and below it.
void narrow_below(Value& grants, const Value& by) {
  const std::string top = path_of(by);
  std::vector<Grant> given;
  for (const Value& grant : grants) given.push_back(build_grant(grant));
  const Grant* ruling = ruling_grant(given, top);
  if (ruling != nullptr && ruling->path != top) {
    Value inner = *std::ranges::find_if(grants, [&](const Value& g) { return path_of(g) == ruling->path; });
    inner["path"] = top;
    inner["source"] = ruling->source + top.substr(ruling->path.size());
    grants.push_back(std::move(inner));
  }
  for (Value& grant : grants) {
    const bool below = inside(path_of(grant), top);
    if (below && by.value("access", "read") == "read") grant["access"] = "read";
    if (below && !by.value("execute", false)) grant["execute"] = false;
  }
}

void apply_grants(Value& doc, const Value& preset) {
  for (const Value& grant : list_of(preset, "grants")) {
    const auto reason =
        std::ranges::find_if(list_of(preset, "weaken"), [&](const Value& w) { return w["field"] == "/grants" + path_of(grant); });
    if (reason == list_of(preset, "weaken").end()) {
      narrow_below(doc["grants"], grant);
    } else if (std::ranges::find(doc["grants"], path_of(grant), path_of) == doc["grants"].end()) {
      doc["grants"].push_back(grant);
      doc["weaken"].push_back(*reason);
    }
  }
}

}  // namespace

Value apply_preset(const Value& base, Value doc, const Value& preset) {
  doc = with_defaults(std::move(doc));
  const auto way_out = [](const Value& of) { return of["network"] != "none" && of["network"] != "loopback"; };
  const bool sent_out = !way_out(doc);  // if it has a way out at all, it has it of the preset
  for (const Field& field : policy_fields()) {
    if (field.widens == Widens::never || field.widens == Widens::grants) continue;
    const Value* wanted = at(preset, field.pointer);
    if (wanted == nullptr) continue;
    const std::string pointer(field.pointer);
    Value& mine = doc[nlohmann::json::json_pointer(pointer)];
    Value now = field.widens == Widens::rules ? egress_under(mine, *wanted, sent_out, doc["network"])
                                              : joined(field, *at(base, pointer), mine, *wanted);
    if (now == mine) continue;
    mine = std::move(now);
    doc["why"].erase(pointer);
    if (const auto why = list_of(preset, "why").find(pointer); why != list_of(preset, "why").end()) doc["why"][pointer] = *why;
    for (const Value& entry : list_of(preset, "weaken"))
      if (entry["field"] == pointer) doc["weaken"].push_back(entry);
  }
  apply_grants(doc, preset);
  return doc;
}

}  // namespace caisson::policy
