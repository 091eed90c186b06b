#include "agent/derive/llms.h"

#include <algorithm>
#include <utility>

#include "launcher/common/tables/fields.h"

namespace caisson::derive {
namespace {

using json::Value;
using routes::Components;
using routes::Route;

constexpr std::string_view kBeginning =
    "# Caisson\n"
    "\n"
    "> Sealed shell, code and browser sessions for AI agents, behind the AIO Sandbox API. Every operation of this server is "
    "below.\n"
    "\n"
    "Set `URL` to the address of this server and `KEY` to its API key. The key goes in the header `X-AIO-API-Key`, in\n"
    "`Authorization: Bearer`, or in the query as `api_key`. Bodies and answers are JSON. An answer is\n"
    "`{\"success\", \"message\", \"data\", \"hint\"}`; `success` is false, with HTTP 200, if a command or tool failed. 401: no "
    "or wrong\n"
    "key. 404: the session or other object does not exist. 422: `detail` lists what is wrong with the body. 429 and 503: try "
    "again\n"
    "after `Retry-After` seconds. The header `X-Caisson-Workspace` names a workspace. The same as OpenAPI: `/v1/openapi.json`.\n";

const Value& resolved(const Value& schema, const Components& components) {
  const auto ref = schema.find("$ref");
  if (ref == schema.end()) return schema;
  const auto& name = ref->get_ref<const std::string&>();
  const auto it = components.find(name.substr(name.rfind('/') + 1));
  return it == components.end() ? schema : it->second;
}

// "string", "array of integer", "string or null", or the name of an object.
std::string type_text(const Value& schema, const Components& components) {
  std::string out;
  if (const auto options = schema.find("anyOf"); options != schema.end()) {
    for (const Value& option : *options) out.append(out.empty() ? "" : " or ").append(type_text(option, components));
    return out;
  }
  const Value& whole = resolved(schema, components);
  out = json::text_of(whole, "type");
  if (const auto items = whole.find("items"); out == "array" && items != whole.end())
    out.append(" of ").append(type_text(*items, components));
  return out.empty() ? "any" : out;
}

bool is_required(const Value& object, std::string_view name) {
  const auto required = object.find("required");
  return required != object.end() && std::ranges::any_of(*required, [&](const Value& one) { return one == name; });
}

void append_field(std::string& out, std::string_view name, const Value& field, bool required, const Components& components) {
  out.append("- `").append(name).append("` (").append(type_text(field, components));
  if (required) out += ", required";
  if (const auto fallback = field.find("default"); fallback != field.end() && !fallback->is_null())
    out.append(", default ").append(json::dump(*fallback));
  out += ')';
  std::string doc = json::text_of(field, "description");
  std::ranges::replace(doc, '\n', ' ');
  if (!doc.empty()) out.append(": ").append(doc);
  out += '\n';
}

// A value that a reader replaces.
Value placeholder(std::string_view name, const Value& given, const Components& components) {
  const Value& schema = resolved(given, components);
  if (const auto options = schema.find("anyOf"); options != schema.end() && !options->empty())
    return placeholder(name, options->front(), components);
  if (const auto only = schema.find("const"); only != schema.end()) return *only;
  if (const auto values = schema.find("enum"); values != schema.end() && !values->empty()) return values->front();
  const std::string type = json::text_of(schema, "type");
  if (type == "integer" || type == "number") return schema.value("minimum", Value(1));
  if (type == "boolean") return true;
  if (type == "array") return Value::array();
  if (type == "object") return Value::object();
  return std::string(name) == "command" ? "ls -l" : "...";
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Of a body that is one of several objects: the member that tells them apart, or "".
std::string tag_of(const Value& body) {
  const auto discriminator = body.find("discriminator");
  return discriminator == body.end() ? "" : json::text_of(*discriminator, "propertyName");
}

// A line for each of these objects: its tag, and its other members.
void append_alternatives(std::string& out, const Value& body, const Components& components) {
  const std::string tag = tag_of(body);
  for (const Value& option : body.at("oneOf")) {
    const Value& whole = resolved(option, components);
    out.append("- `").append(tag).append("` ").append(json::dump(whole.at("properties").at(tag).at("const")));
    std::string_view before = " with ";
    for (const auto& [name, field] : whole.at("properties").items()) {
      if (name == tag) continue;
      out.append(std::exchange(before, ", ")).append("`").append(name).append("` (").append(type_text(field, components));
      out.append(is_required(whole, name) ? ", required)" : ")");
    }
    out += '\n';
  }
}

void append_curl(std::string& out, const Route& route, const Value* body, const Components& components) {
  std::string path(route.path);
  std::ranges::replace(path, '{', '<');
  std::ranges::replace(path, '}', '>');
  out.append("\n    curl -sS");
  if (route.method != http::Method::get) out.append(" -X ").append(http::method_name(route.method));
  if ((route.flags & routes::kPublic) == 0) out += " -H \"X-AIO-API-Key: $KEY\"";
  if (body != nullptr && (route.flags & routes::kStreamedBody) != 0) {
    out += " -F 'file=@<file>'";
  } else if (body != nullptr) {
    Value example = Value::object();
    const std::string tag = tag_of(*body);
    const Value& object = tag.empty() ? *body : resolved(body->at("oneOf").front(), components);
    if (const auto fields = object.find("properties"); fields != object.end())
      for (const auto& [name, field] : fields->items())
        if (is_required(object, name) || name == tag) example[name] = placeholder(name, field, components);
    out.append(" -H 'Content-Type: application/json' -d ").append(shell_quoted(json::dump(example)));
  }
  char separator = '?';
  for (const routes::Parameter& parameter : route.query) {
    if (!parameter.required) continue;
    path.append(1, std::exchange(separator, '&')).append(parameter.name).append("=<").append(parameter.name).append(">");
  }
  out.append(" \"$URL").append(path).append("\"\n\n");
}

void append_operation(std::string& out, const Route& route, Components& components) {
  out.append("### ").append(http::method_name(route.method)).append(" ").append(route.path).append("\n\n");
  out.append(route.summary).append(".\n");
  if (route.endpoint.websocket != nullptr) {
    out.append("A WebSocket of JSON text frames.\n\n");
    return;
  }
  std::string fields;
  for (const routes::Parameter& parameter : route.query) {
    fields.append("- `").append(parameter.name).append("` in the query (").append(parameter.type);
    fields.append(parameter.required ? ", required): " : "): ").append(parameter.doc).append("\n");
  }
  Value described = route.endpoint.describe_body == nullptr ? Value() : route.endpoint.describe_body(components);
  if (described.is_object() && described.contains("anyOf")) described = Value(described["anyOf"].front());  // or null
  const Value* body = described.is_null() ? nullptr : &resolved(described, components);
  if (body != nullptr && !tag_of(*body).empty()) append_alternatives(fields, *body, components);
  if (body != nullptr && body->contains("properties"))
    for (const auto& [name, field] : (*body)["properties"].items())
      append_field(fields, name, field, is_required(*body, name), components);
  if (!fields.empty()) out.append("\n").append(fields);
  append_curl(out, route, body, components);
}

}  // namespace

std::string llms_text(const std::vector<const Route*>& table) {
  std::string out(kBeginning);
  Components components;
  for (const routes::Tag& tag : routes::tags()) {
    out.append("\n## ").append(tag.name).append(": ").append(tag.doc).append("\n\n");
    for (const Route* route : table)
      if (route->scope == tag.scope && (route->flags & routes::kHidden) == 0) append_operation(out, *route, components);
  }
  return out;
}

}  // namespace caisson::derive
