// The coding agents that the pages /codex and /opencode start, and what the operator's variables say of them. The variables are
// read and checked as a whole at start: an invalid one stops the agent by its name. They are the operator's and are for the
// workspace `default`; other workspaces are tenants, and get neither its keys nor its addresses.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"

namespace caisson::services {

struct CodingAgent {
  std::string_view name;      // of its command, and of its page: "codex" is at /codex
  std::string_view title;     // as people call it
  std::string_view argument;  // of the image's build
};
inline constexpr CodingAgent kCodingAgents[] = {{"codex", "Codex", "CODEX"}, {"opencode", "OpenCode", "OPENCODE"}};

// nullptr: no program has this name.
[[nodiscard]] constexpr const CodingAgent* coding_agent(std::string_view name) {
  const auto* const found = std::ranges::find(kCodingAgents, name, &CodingAgent::name);
  return found == std::end(kCodingAgents) ? nullptr : found;
}

// Empty: not set.
struct CodingSettings {
  struct Codex {
    std::string model, base_url;
    std::string config;   // CODEX_CONFIG_TOML, which is TOML
    std::string catalog;  // CODEX_MODEL_CATALOG_JSON, which is an object
    bool has_key = false;
    std::string key_url;  // whose keys are called like the one that is taken; has a meaning without base_url
  } codex;
  struct OpenCode {
    std::string model, provider, base_url, npm;
    json::Value config;  // OPENCODE_JSON: null or an object
    bool has_key = false;
  } opencode;
  // By the agent's name: the variables of the session that its page makes. The keys are here and nowhere else.
  std::map<std::string, std::map<std::string, std::string>> environments;
};

// Takes the keys out of the environment. Errors: invalid_argument, with the variable, the line where it has several, and what is
// expected; no key is quoted.
[[nodiscard]] Result<CodingSettings> coding_from_env();

}  // namespace caisson::services
