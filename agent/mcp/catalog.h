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

// What a request's query leaves of the tools: ?servers=a,b&tools=x,y name them, ?search= is a part of a name or description.
class Filter {
 public:
  Filter() = default;
  explicit Filter(const http::Request& request);
  // Whether the tool is there for the client; the search only shortens the list.
  [[nodiscard]] bool admits(const Server& server, const Tool& tool) const;
  [[nodiscard]] bool lists(const Server& server, const Tool& tool) const;

 private:
  std::vector<std::string> servers_, tools_;
  std::string search_;
};

// Also by a name that older images had. nullptr: the filter or the scopes leave none of that name.
[[nodiscard]] const Tool* find_tool(std::string_view name, const Filter& filter, const auth::Scopes& scopes);
[[nodiscard]] const Server* find_server(std::string_view name);
[[nodiscard]] bool permits(const auth::Scopes& scopes, const Tool& tool);

// {name, title, description, inputSchema, outputSchema, annotations}.
[[nodiscard]] json::Value describe(const Tool& tool);

}  // namespace caisson::mcp
