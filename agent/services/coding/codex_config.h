// Codex's config.toml, made of the operator's variables, and the TOML that one of them holds. What CODEX_CONFIG_TOML says goes
// before everything else that is written here.
#pragma once

#include <string>
#include <string_view>

#include "agent/services/coding/coding_settings.h"

namespace caisson::services {

inline constexpr std::string_view kOpenAiUrl = "https://api.openai.com/v1";
inline constexpr std::string_view kArkUrl = "https://ark.cn-beijing.volces.com/api/v3";
inline constexpr std::string_view kCodexKeyName = "CODEX_API_KEY";  // where a session's Codex looks for its key

// invalid_argument: "line 3, column 9: ...".
[[nodiscard]] Status check_toml(std::string_view text);

// version: of the installed Codex; "": unknown. catalog: the path of the model catalog; "": the operator gave no catalog.
[[nodiscard]] std::string codex_config(const CodingSettings::Codex& settings, std::string_view version,
                                       const std::string& catalog);

// Whether this version confines its commands by Landlock when it is told to (policies/nested.md).
[[nodiscard]] bool confines_by_landlock(std::string_view version);

}  // namespace caisson::services
