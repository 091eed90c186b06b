#include "agent/mcp/catalog.h"

#include <algorithm>

#include "agent/http/token.h"

namespace caisson::mcp {
namespace {

// Names of older images, which tools/list leaves out.
struct Alias {
  std::string_view name, tool;
};
constexpr Alias kAliases[] = {
    {"browser_execute_action", "sandbox_browser_execute_action"},
    {"sandbox_browser_close_tab", "browser_close_tab"},
    {"sandbox_browser_element_click", "browser_click"},
    {"sandbox_browser_element_hover", "browser_hover"},
    {"sandbox_browser_element_select", "browser_select"},
    {"sandbox_browser_evaluate", "browser_evaluate"},
    {"sandbox_browser_form_input_fill", "browser_form_input_fill"},
    {"sandbox_browser_get_clickable_elements", "browser_get_clickable_elements"},
    {"sandbox_browser_get_download_list", "browser_get_download_list"},
    {"sandbox_browser_get_info", "sandbox_get_browser_info"},
    {"sandbox_browser_get_markdown", "browser_get_markdown"},
    {"sandbox_browser_get_text", "browser_get_text"},
    {"sandbox_browser_go_back", "browser_go_back"},
    {"sandbox_browser_go_forward", "browser_go_forward"},
    {"sandbox_browser_navigate", "browser_navigate"},
    {"sandbox_browser_new_tab", "browser_new_tab"},
    {"sandbox_browser_press_key", "browser_press_key"},
    {"sandbox_browser_read_links", "browser_read_links"},
    {"sandbox_browser_scroll", "browser_scroll"},
    {"sandbox_browser_switch_tab", "browser_switch_tab"},
    {"sandbox_browser_tab_list", "browser_tab_list"},
};

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) out.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return out;
}

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

constexpr std::string_view kComponents = "#/components/schemas/";

// References to components become references to the schema's own $defs. `discriminator` is OpenAPI's, and not of JSON Schema.
void localize(json::Value& schema) {
  if (schema.is_array() || schema.is_object())
    for (json::Value& part : schema) localize(part);
  if (!schema.is_object()) return;
  schema.erase("discriminator");
  const auto at = schema.find("$ref");
  if (at != schema.end() && at->is_string() && at->get_ref<const std::string&>().starts_with(kComponents))
    *at = "#/$defs/" + at->get_ref<const std::string&>().substr(kComponents.size());
}

// A schema that stands by itself, of an object, as MCP wants it.
json::Value whole_schema(json::Value (*describe)(routes::Components&)) {
  routes::Components components;
  json::Value root = describe(components);
  if (const auto at = root.find("$ref"); at != root.end()) {
    const std::string name = at->get_ref<const std::string&>().substr(kComponents.size());
    root = std::move(components.at(name));
    components.erase(name);
  }
  root["type"] = "object";
  if (!root.contains("properties") && !root.contains("oneOf")) root["properties"] = json::Value::object();
  for (auto& [name, schema] : components) root["$defs"][name] = std::move(schema);
  localize(root);
  return root;
}

}  // namespace

Filter::Filter(const http::Request& request)
    : servers_(names_in(request.query_value("servers").value_or(""))),
      tools_(names_in(request.query_value("tools").value_or(""))),
      tags_(names_in(request.query_value("tags").value_or(""))),
      search_(http::lower(request.query_value("search").value_or(""))) {}

bool Filter::admits_server(std::string_view name, const std::vector<std::string>& tags) const {
  if (!holds(servers_, name)) return false;
  return holds(tags_, name) || std::ranges::any_of(tags, [this](const std::string& tag) { return holds(tags_, tag); });
}

bool Filter::admits_tool(std::string_view name) const { return holds(tools_, name); }

bool Filter::finds(std::string_view name, std::string_view description) const {
  return search_.empty() || http::lower(name).contains(search_) || http::lower(description).contains(search_);
}

bool permits(const auth::Scopes& scopes, const Tool& tool) { return scopes.permits(routes::scope_name(tool.scope), tool.access); }

bool has_tool(std::string_view name) {
  const auto of = [name](const Server& server) {
    return std::ranges::find(server.tools(), name, &Tool::name) != server.tools().end();
  };
  return std::ranges::find(kAliases, name, &Alias::name) != std::end(kAliases) || std::ranges::any_of(kServers, of);
}

const Tool* find_tool(std::string_view name, const Filter& filter, const auth::Scopes& scopes) {
  const auto alias = std::ranges::find(kAliases, name, &Alias::name);
  if (alias != std::end(kAliases)) name = alias->tool;
  for (const Server& server : kServers)
    for (const Tool& tool : server.tools())
      if (tool.name == name)
        return filter.admits_server(server.name, {}) && filter.admits_tool(name) && permits(scopes, tool) ? &tool : nullptr;
  return nullptr;
}

const Server* find_server(std::string_view name) {
  const auto found = std::ranges::find(kServers, name, &Server::name);
  return found == kServers.end() ? nullptr : &*found;
}

std::string_view server_of(const Tool& tool) {
  for (const Server& server : kServers)
    if (const auto tools = server.tools(); &tool >= tools.data() && &tool < tools.data() + tools.size()) return server.name;
  return "";
}

json::Value describe(const Tool& tool) {
  json::Value out = {{"name", tool.name}, {"title", tool.title}, {"description", tool.doc}};
  out["inputSchema"] = whole_schema(tool.handler.describe);
  if (tool.describe_result != nullptr) out["outputSchema"] = whole_schema(tool.describe_result);
  const bool reads = (tool.hints & kReads) != 0;
  out["annotations"] = {{"title", tool.title}, {"readOnlyHint", reads}, {"openWorldHint", (tool.hints & kOutside) != 0}};
  out["annotations"]["idempotentHint"] = (tool.hints & kRepeats) != 0;
  if (!reads) out["annotations"]["destructiveHint"] = (tool.hints & kDestroys) != 0;
  return out;
}

}  // namespace caisson::mcp
