#include "agent/derive/openapi.h"

#include <algorithm>

#include "agent/http/token.h"
#include "launcher/common/base/word.h"

namespace caisson::derive {
namespace {

using json::Value;
using routes::Components;
using routes::Route;

Value schema_ref(std::string_view name) { return {{"$ref", "#/components/schemas/" + std::string(name)}}; }
Value json_content(Value schema) { return {{"application/json", {{"schema", std::move(schema)}}}}; }
Value or_null(Value schema) {
  Value options = schema.contains("anyOf") ? std::move(schema["anyOf"]) : Value::array({std::move(schema)});
  options.push_back({{"type", "null"}});
  Value out = Value::object();
  out["anyOf"] = std::move(options);
  return out;
}

// The envelope around one type of data, by the name that FastAPI gives it: Response[list[X]] is Response_list_X__.
std::string add_envelope(const Route& route, Components& components) {
  const std::string data_name = route.endpoint.data_name == nullptr ? "" : route.endpoint.data_name();
  const std::string name = data_name.empty() ? "Response" : "Response_" + data_name + "_";
  if (components.contains(name)) return name;
  Value data = route.endpoint.describe_data == nullptr ? Value::object() : or_null(route.endpoint.describe_data(components));
  data["title"] = "Data";
  data["description"] = "Data returned from the operation";
  const Value text = {{"type", "string"}};
  components[name] = {
      {"type", "object"},
      {"title", name},
      {"properties",
       {{"success",
         {{"type", "boolean"}, {"title", "Success"}, {"default", true}, {"description", "Whether the operation was successful"}}},
        {"message", or_null(text)},
        {"data", std::move(data)},
        {"hint", or_null(text)}}}};
  return name;
}

constexpr std::string_view kBytes = "application/octet-stream";

// content_types: separated by a space.
Value bytes_response(std::string_view content_types, std::string_view description) {
  const Value bytes = {{"type", "string"}, {"format", "binary"}};
  Value content = Value::object();
  for (std::ptrdiff_t i = 0; i < count_words(content_types); ++i)
    content[std::string(word(content_types, static_cast<std::size_t>(i)))] = {{"schema", bytes}};
  return {{"description", description}, {"content", std::move(content)}};
}

Value success_response(const Route& route, Components& components) {
  if (route.endpoint.websocket != nullptr)
    return {{"description", "Switching Protocols: a WebSocket of JSON text frames begins"}};
  if (!route.content_type.empty()) return bytes_response(route.content_type, "Successful Response");
  Value schema = (route.flags & routes::kFlat) != 0 && route.endpoint.describe_data != nullptr
                     ? route.endpoint.describe_data(components)
                     : schema_ref(add_envelope(route, components));
  if ((route.flags & routes::kBinary) != 0) return bytes_response(kBytes, "Successful Response");
  Value content = json_content(std::move(schema));
  if ((route.flags & routes::kEventStream) != 0) content["text/event-stream"] = {{"schema", {{"type", "string"}}}};
  return {{"description", "Successful Response"}, {"content", std::move(content)}};
}

Value path_parameters(std::string_view path) {
  Value out = Value::array();
  for (std::size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    const std::string_view name = path.substr(at + 1, path.find('}', at) - at - 1);
    out.push_back({{"name", name},
                   {"in", "path"},
                   {"required", true},
                   {"schema", {{"type", name == "index" ? "integer" : "string"}, {"title", routes::schema::title_of(name)}}}});
  }
  return out;
}

Value workspace_parameter() {
  return {{"name", "X-Caisson-Workspace"},
          {"in", "header"},
          {"required", false},
          {"description", "The workspace of the request; 404 if it does not exist"},
          {"schema", {{"type", "string"}, {"title", "Workspace"}, {"default", "default"}}}};
}

Value query_parameter(const routes::Parameter& p) {
  Value schema = routes::schema::describe_scalar(p.type, p.bounds);
  if (p.fallback == "null") schema = or_null(std::move(schema));
  else if (!p.fallback.empty()) schema["default"] = Value::parse(p.fallback);
  schema["title"] = routes::schema::title_of(p.name);
  return {{"name", p.name}, {"in", "query"}, {"required", p.required}, {"description", p.doc}, {"schema", std::move(schema)}};
}

// The answers of an operation besides success: those of the checks before its handler (routes/admission.cc), and those that its
// row names.
struct Refusal {
  std::string_view status, name, description;
  bool (*applies)(const Route&);
  bool later = false;  // with Retry-After
};
bool always(const Route&) { return true; }
bool keyed(const Route& r) { return (r.flags & routes::kPublic) == 0; }  // a wrong key is 401
bool has_path_parameter(const Route& r) { return r.path.find('{') != std::string_view::npos; }
bool has_body(const Route& r) { return r.endpoint.describe_body != nullptr; }
constexpr Refusal kRefusals[] = {
    {"400", "BadRequest", "The request cannot be read, or names two workspaces", always},
    {"401", "Unauthorized", "No or wrong API key", keyed},
    {"403", "Forbidden", "Not from this origin, or not to this host; or not possible here", always},
    {"404", "NotFound", "The named workspace, session or other object does not exist",
     [](const Route& r) { return routes::has_workspace(r) || has_path_parameter(r); }},
    {"409", "Conflict", "What is there does not permit it", [](const Route& r) { return (r.flags & routes::kConflict) != 0; }},
    {"413", "ContentTooLarge", "The body is larger than is taken", has_body},
    {"416", "RangeNotSatisfiable", "The file has no such range", [](const Route& r) { return (r.flags & routes::kBinary) != 0; }},
    {"429", "TooManyRequests", "This client or workspace has as much under way, or as many, as it may", keyed, true},
    {"503", "ServiceUnavailable", "The server has as much under way as it can, or is not ready", always, true},
};

void add_refusals(const Route& route, Value& responses) {
  for (const Refusal& refusal : kRefusals)
    if (refusal.applies(route))
      responses[std::string(refusal.status)] = {{"$ref", "#/components/responses/" + std::string(refusal.name)}};
  if (has_body(route) || has_path_parameter(route) || !route.query.empty())
    responses["422"] = {{"description", "Validation Error"}, {"content", json_content(schema_ref("HTTPValidationError"))}};
}

Value refusal_responses() {
  Value out = Value::object();
  for (const Refusal& refusal : kRefusals) {
    Value& response = out[std::string(refusal.name)];
    response = {{"description", refusal.description}, {"content", json_content(schema_ref("Response"))}};
    if (refusal.later)
      response["headers"] = {{"Retry-After", {{"description", "Seconds to wait"}, {"schema", {{"type", "integer"}}}}}};
  }
  return out;
}

Value tags() {
  Value out = Value::array();
  for (const routes::Tag& tag : routes::tags()) out.push_back({{"name", tag.name}, {"description", tag.doc}});
  return out;
}

Value body_content(const Route& route, Value schema) {
  if ((route.flags & routes::kStreamedBody) != 0) return {{"multipart/form-data", {{"schema", std::move(schema)}}}};
  return json_content(std::move(schema));
}

Value operation(const Route& route, Components& components) {
  Value responses = {{route.endpoint.websocket != nullptr ? "101" : "200", success_response(route, components)}};
  if ((route.flags & routes::kBinary) != 0) responses["206"] = bytes_response(kBytes, "The range that was asked for");
  Value out = {
      {"tags", Value::array({routes::scope_name(route.scope)})}, {"summary", route.summary}, {"operationId", route.operation_id}};
  Value parameters = path_parameters(route.path);
  if (routes::has_workspace(route)) parameters.push_back(workspace_parameter());
  for (const routes::Parameter& p : route.query) parameters.push_back(query_parameter(p));
  if (route.endpoint.describe_body != nullptr)
    out["requestBody"] = {{"required", route.endpoint.body_required},
                          {"content", body_content(route, route.endpoint.describe_body(components))}};
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  if (routes::is_keyless(route)) out["security"] = Value::array();
  add_refusals(route, responses);
  out["responses"] = std::move(responses);
  return out;
}

Components fixed_components() {
  const Value text = {{"type", "string"}};
  const Value loc = {{"type", "array"}, {"items", {{"anyOf", Value::array({text, {{"type", "integer"}}})}}}};
  Components out;
  out["ValidationError"] = {{"type", "object"},
                            {"title", "ValidationError"},
                            {"required", {"loc", "msg", "type"}},
                            {"properties", {{"loc", loc}, {"msg", text}, {"type", text}}}};
  out["HTTPValidationError"] = {{"type", "object"},
                                {"title", "HTTPValidationError"},
                                {"properties", {{"detail", {{"type", "array"}, {"items", schema_ref("ValidationError")}}}}}};
  static const Route kAny{};
  add_envelope(kAny, out);
  return out;
}

// A way to show a right, as Security Scheme Object. One that needs a route is described where the table has that route.
struct Scheme {
  std::string_view name, type, in, parameter, route;
};
constexpr Scheme kSchemes[] = {
    {"api_key_header", "apiKey", "header", "X-AIO-API-Key", ""},
    {"api_key_bearer", "http", "", "", ""},
    {"api_key_query", "apiKey", "query", "api_key", ""},
    {"ticket", "apiKey", "query", "ticket", "/tickets"},
};

bool offered(const Scheme& scheme, const std::vector<const Route*>& table) {
  return scheme.route.empty() ||
         std::ranges::find(table, scheme.route, [](const Route* route) { return route->path; }) != table.end();
}

Value security_schemes(const std::vector<const Route*>& table) {
  Value out = Value::object();
  for (const Scheme& scheme : kSchemes) {
    if (!offered(scheme, table)) continue;
    Value& described = out[std::string(scheme.name)];
    described["type"] = scheme.type;
    if (scheme.in.empty()) described["scheme"] = "bearer";
    else described.update({{"in", scheme.in}, {"name", scheme.parameter}});
  }
  return out;
}

// Any one of them is enough.
Value security(const std::vector<const Route*>& table) {
  Value out = Value::array();
  for (const Scheme& scheme : kSchemes)
    if (offered(scheme, table)) out.push_back({{std::string(scheme.name), Value::array()}});
  return out;
}

}  // namespace

Value openapi(const std::vector<const Route*>& table) {
  Components components = fixed_components();
  Value paths = Value::object();
  for (const Route* route : table)
    if ((route->flags & routes::kHidden) == 0)
      paths[std::string(route->path)][http::lower(http::method_name(route->method))] = operation(*route, components);
  return {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Caisson"},
        {"version", CAISSON_VERSION},
        {"description", "Sealed shell, code and browser sessions for AI agents, behind the AIO Sandbox API"},
        {"license", {{"name", "Apache License 2.0"}, {"identifier", "Apache-2.0"}}}}},
      {"servers", Value::array({{{"url", "/"}, {"description", "The server of this document"}}})},
      {"tags", tags()},
      {"paths", std::move(paths)},
      {"components", {{"schemas", components}, {"responses", refusal_responses()}, {"securitySchemes", security_schemes(table)}}},
      {"security", security(table)}};
}

}  // namespace caisson::derive
