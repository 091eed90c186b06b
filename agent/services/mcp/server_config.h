// The MCP servers that are configured, as `mcpServers` of Claude Desktop and its kin have them, with members of ours. Pure
// values.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"

namespace caisson::services {

// Names of tools, or of credentials: "*" stands for any text.
using Patterns = std::vector<std::string>;
[[nodiscard]] bool matches(const Patterns& patterns, std::string_view name);

// What some credentials may use of a server.
struct ServerRule {
  Patterns identities;    // names of credentials, as auth::Principal has them
  Patterns allow, block;  // tools by the server's own names; block goes first, an empty allow is everything
  bool operator==(const ServerRule&) const = default;
};

struct ServerConfig {
  std::string name;    // the key in mcpServers: 1 to 64 of [A-Za-z0-9_-]
  std::string prefix;  // of its tools and prompts, for clients of /mcp; by default the name and "_"

  // A program that speaks over its pipes, in a session of its own in this domain ...
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;        // what is there already is not replaced: a container's own PATH, for example
  std::map<std::string, std::string> env_files;  // variable -> file below /etc/caisson/mcp whose text it gets
  std::string cwd;
  std::string domain;  // "mcp" or "mcp-...": its policy has the grants, the names that it may reach, and the limits
  // ... or a server of the network, which a program of ours reaches from such a session.
  std::string url;
  std::map<std::string, std::string> headers, header_files;
  bool events = false;  // by HTTP+SSE, the transport of revision 2024-11-05

  Patterns allow, block;          // as in ServerRule, for everybody
  std::vector<ServerRule> rules;  // if there are any: nobody else uses the server
  std::vector<std::string> tags;
  bool hidden = false;    // not in GET /v1/mcp/servers
  bool disabled = false;  // as if it were not there
  // The digest that its list of tools must have; "first": the one that it had first; "off": any.
  std::string pin = "first";
  bool newest = false;  // it is spoken to in revision 2026-07-28
  std::chrono::seconds timeout{60}, idle{300};
  std::string added_by;  // the credential (Asker::owner) that added it over the API; empty: the operator configured it

  // Which of its tools this credential may use.
  [[nodiscard]] bool permits(std::string_view identity, std::string_view tool) const;
  // Whether it may use any.
  [[nodiscard]] bool permits(std::string_view identity) const;
  bool operator==(const ServerConfig&) const = default;
};

inline constexpr std::size_t kMostServers = 256;

// Whether a name can begin with both prefixes.
[[nodiscard]] constexpr bool overlap(std::string_view one, std::string_view other) {
  return one.starts_with(other) || other.starts_with(one);
}

// Reads one server's entry. Errors: invalid_argument, with the member.
[[nodiscard]] Result<ServerConfig> parse_server(const std::string& name, const json::Value& given);

// Reads {"mcpServers": {name: {...}}}, or what is in it. Members that nobody knows are errors: a misspelt `block` would permit.
// Errors: invalid_argument, with the line, the server and the member.
[[nodiscard]] Result<std::vector<ServerConfig>> parse_servers(std::string_view text);

}  // namespace caisson::services
