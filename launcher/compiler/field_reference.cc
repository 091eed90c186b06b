// What derives from the field table for people and editors: JSON Schema and the reference in policies/README.md. Unit tests
// compare both with the files in the repository; `CAISSON_UPDATE=1 unit_policy` rewrites them.
#include "launcher/compiler/fields.h"

#include <iterator>

namespace caisson::policy {
namespace {

using json::Value;

Value object_schema(const std::string& pattern);

Value string_schema(const Field& f) {
  Value out{{"type", "string"}};
  if (f.form == Form::path) out["pattern"] = "^(/[^/]+)+$";
  if (f.form == Form::source) out["pattern"] = "^((/[^/]+)+|home:[^/].*|workspace:[a-z]+)$";
  return out;
}

Value list_schema(const Field& f, Value items) {
  return Value{{"type", "array"}, {"items", std::move(items)}, {"minItems", f.min}, {"maxItems", f.max}};
}

Value type_schema(const Field& f) {
  const std::string pattern(f.pointer);
  switch (f.type) {
    case Type::text: {
      Value out = string_schema(f);
      out["minLength"] = f.min;
      out["maxLength"] = f.max;
      return out;
    }
    case Type::choice:
      return Value{{"type", "string"}, {"enum", split(f.allowed)}};
    case Type::boolean:
      return Value{{"type", "boolean"}};
    case Type::number:
    case Type::integer:
      return Value{{"type", "integer"}, {"minimum", f.min}, {"maximum", f.max}};
    case Type::octal:
      return Value{{"type", "string"}, {"pattern", "^[0-7]{3}$"}};
    case Type::list: {
      Value out = list_schema(f, f.allowed.empty() ? string_schema(f) : Value{{"type", "string"}, {"enum", split(f.allowed)}});
      out["uniqueItems"] = true;
      return out;
    }
    case Type::ports: {
      Value out = list_schema(f, Value{{"type", "integer"}, {"minimum", 1}, {"maximum", 65535}});
      out["uniqueItems"] = true;
      return out;
    }
    case Type::ranges: {
      const Value port{{"type", "integer"}, {"minimum", 1}, {"maximum", 65535}};
      return list_schema(f, Value{{"oneOf", {port, {{"type", "string"}, {"pattern", "^[0-9]{1,5}-[0-9]{1,5}$"}}}}});
    }
    case Type::map:
    case Type::content: {
      Value item{{"type", "string"}};
      if (f.type == Type::content)
        item = Value{{"oneOf", {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}}}};
      return Value{{"type", "object"}, {"additionalProperties", std::move(item)}, {"maxProperties", f.max}};
    }
    case Type::object:
      return object_schema(pattern);
    case Type::objects:
      return list_schema(f, object_schema(pattern + "/*"));
    case Type::rows:
      return list_schema(f, Value{{"type", "array"}, {"items", object_schema(pattern + "/*/*")}});
  }
  return {};
}

Value object_schema(const std::string& pattern) {
  Value out{{"type", "object"}, {"additionalProperties", false}, {"properties", Value::object()}};
  for (const Field& f : policy_fields()) {
    if (!f.pointer.starts_with(pattern + "/") || f.pointer.find('/', pattern.size() + 1) != std::string_view::npos) continue;
    const std::string name(f.pointer.substr(pattern.size() + 1));
    Value& property = out["properties"][name] = type_schema(f);
    property["description"] = f.doc;
    if (f.fallback == kRequired) out["required"].push_back(name);
    else if (!f.fallback.empty() && f.type != Type::object) property["default"] = Value::parse(f.fallback);
  }
  return out;
}

// In the order of the enumerators.
constexpr const char* kKinds[] = {"string",
                                  "",
                                  "true, false",
                                  "",
                                  "three octal digits",
                                  "",
                                  "list of names",
                                  "list of ports",
                                  "list of ports and ranges",
                                  "name to string",
                                  "path to text",
                                  "object",
                                  "list of objects",
                                  "list of rows"};
constexpr const char* kWidening[] = {"",
                                     "",
                                     "more",
                                     "less",
                                     "adding",
                                     "removing",
                                     "more access, or a new path",
                                     "nothing: lists are added up",
                                     "more that is allowed"};
static_assert(std::size(kKinds) == static_cast<std::size_t>(Type::rows) + 1 &&
              std::size(kWidening) == static_cast<std::size_t>(Widens::rules) + 1);

std::string kind(const Field& f) {
  if (f.type == Type::number || f.type == Type::integer) return std::to_string(f.min) + " to " + std::to_string(f.max);
  if (f.form == Form::path && f.type == Type::text) return "path";
  if (f.form == Form::path && f.type == Type::list) return "list of paths";
  if (f.form == Form::name) return "list of names";
  std::string out = kKinds[static_cast<std::size_t>(f.type)];
  if (f.type == Type::choice)
    for (const auto& choice : split(f.allowed)) out += (out.empty() ? "`\"" : ", `\"") + choice + "\"`";
  return out;
}

}  // namespace

std::string schema_text() {
  Value schema = object_schema("");
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Caisson policy";
  return json::dump(schema, 2) + "\n";
}

std::string reference_text() {
  std::string out = "| field | value | default | widens by | |\n|---|---|---|---|---|\n";
  for (const Field& f : policy_fields()) {
    const std::string fallback = f.type == Type::object || f.fallback.empty() ? ""
                                 : f.fallback == kRequired                    ? "required"
                                                                              : "`" + std::string(f.fallback) + "`";
    out += "| `" + std::string(f.pointer) + "` | " + kind(f) + " | " + fallback + " | " +
           kWidening[static_cast<std::size_t>(f.widens)] + " | " + std::string(f.doc) + " |\n";
  }
  return out;
}

}  // namespace caisson::policy
