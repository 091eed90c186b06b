// The tools of the built-in servers: by server, by name, and as tools/list describes them.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "agent/mcp/tool.h"

namespace caisson::mcp {

struct Server {
  std::string_view name;
  std::span<const Tool> (*tools)();
};
// In the order of tools/list.
inline constexpr std::array<Server, 3> kServers = {Server{"sandbox", sandbox_tools}, Server{"browser", browser_tools},
                                                   Server{"markitdown", markitdown_tools}};

// What a request's query leaves of the tools: ?servers=a,b&tags=t&tools=x,y name them, ?search= is a part of a name or
// description.
class Filter {
 public:
  Filter() = default;
  explicit Filter(const http::Request& request);
  // Whether a server, or a tool by its full name, is there for the client. A server's name is a tag of it, too.
  [[nodiscard]] bool admits_server(std::string_view name, const std::vector<std::string>& tags) const;
  [[nodiscard]] bool admits_tool(std::string_view name) const;
  // The search only shortens the list.
  [[nodiscard]] bool finds(std::string_view name, std::string_view description) const;

 private:
  std::vector<std::string> servers_, tools_, tags_;
  std::string search_;
};

// Whether a tool of this program has the name, or had it in older images.
[[nodiscard]] bool has_tool(std::string_view name);
// Also by a name that older images had. nullptr: the filter or the scopes leave none of that name.
[[nodiscard]] const Tool* find_tool(std::string_view name, const Filter& filter, const auth::Scopes& scopes);
[[nodiscard]] const Server* find_server(std::string_view name);
// The name of the built-in server that has the tool.
[[nodiscard]] std::string_view server_of(const Tool& tool);
[[nodiscard]] bool permits(const auth::Scopes& scopes, const Tool& tool);

// {name, title, description, inputSchema, outputSchema, annotations}.
[[nodiscard]] json::Value describe(const Tool& tool);

}  // namespace caisson::mcp
