#include "agent/services/coding/coding_settings.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include "agent/courier/url.h"
#include "agent/services/coding/codex_config.h"
#include "agent/services/common/settings.h"

namespace caisson::services {
namespace {

constexpr std::size_t kMostText = 128 * 1024;  // the kernel's own limit of one variable
constexpr std::size_t kMostKey = 4096;
constexpr std::size_t kMostName = 200;
constexpr std::string_view kAnyPrintable;

// Whose keys have these names, in the order in which they are taken.
struct KeyVariable {
  const Variable& row;
  std::string_view url;
};
constexpr std::array<KeyVariable, 3> kCodexKeys = {
    {{variable("CODEX_API_KEY"), kOpenAiUrl}, {variable("ARK_API_KEY"), kArkUrl}, {variable("OPENAI_API_KEY"), kOpenAiUrl}}};

Error invalid(const Variable& row, std::string_view what) {
  return Error(Code::invalid_argument, std::string(row.name) + ": " + std::string(what));
}

bool is_printable(char c) { return c > ' ' && c < '\x7f'; }

// A key is erased where it stood: /proc shows a process its own first environment for as long as it lives.
Result<std::string> take_key(const Variable& row) {
  std::string key = text_from_env(row);
  const std::string name(row.name);
  if (char* place = std::getenv(name.c_str())) ::explicit_bzero(place, key.size());
  ::unsetenv(name.c_str());
  if (key.size() > kMostKey) return std::unexpected(invalid(row, "a key has at most 4096 characters"));
  if (!std::ranges::all_of(key, is_printable)) return std::unexpected(invalid(row, "a key is printable ASCII without spaces"));
  return key;
}

// Letters, digits and these marks; without marks, whatever is printable.
Result<std::string> take_name(const Variable& row, std::string_view marks) {
  std::string name = text_from_env(row);
  const auto fits = [marks](char c) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || marks.contains(c);
    return marks.empty() ? is_printable(c) : plain;
  };
  if (name.size() <= kMostName && std::ranges::all_of(name, fits)) return name;
  const std::string of = marks.empty() ? "printable ASCII characters" : "letters, digits and " + std::string(marks);
  return std::unexpected(invalid(row, "must be at most 200 " + of + ", without spaces"));
}

Result<std::string> take_url(const Variable& row) {
  std::string url = text_from_env(row);
  if (url.empty()) return url;
  if (auto parsed = courier::parse_url(url); !parsed)
    return std::unexpected(std::move(parsed).error().wrap(std::string(row.name)));
  return url;
}

Result<std::string> take_text(const Variable& row) {
  std::string text = text_from_env(row);
  if (text.size() > kMostText) return std::unexpected(invalid(row, "is longer than 131072 bytes"));
  return text;
}

// Null if it is not set.
Result<json::Value> take_object(const Variable& row) {
  TRY_ASSIGN(const std::string text, take_text(row));
  if (text.empty()) return json::Value();
  auto value = json::parse(text, {.max_bytes = kMostText});
  if (!value) return std::unexpected(std::move(value).error().wrap(std::string(row.name)));
  if (!value->is_object()) return std::unexpected(invalid(row, "must be a JSON object, such as {}"));
  return value;
}

Status read_codex(CodingSettings& settings) {
  CodingSettings::Codex& codex = settings.codex;
  std::map<std::string, std::string>& environment = settings.environments["codex"];
  for (const KeyVariable& one : kCodexKeys) {
    TRY_ASSIGN(std::string key, take_key(one.row));
    if (key.empty()) continue;
    if (!std::exchange(codex.has_key, true)) {
      codex.key_url = one.url;
      environment[std::string(kCodexKeyName)] = key;
    }
    environment.try_emplace(std::string(one.row.name), std::move(key));  // the operator's configuration may name it
  }
  TRY_ASSIGN(codex.model, take_name(variable("CODEX_MODEL"), kAnyPrintable));
  TRY_ASSIGN(codex.base_url, take_url(variable("CODEX_BASE_URL")));
  TRY_ASSIGN(codex.config, take_text(variable("CODEX_CONFIG_TOML")));
  if (Status parsed = check_toml(codex.config); !parsed)
    return std::unexpected(std::move(parsed).error().wrap("CODEX_CONFIG_TOML"));
  TRY_ASSIGN(const json::Value catalog, take_object(variable("CODEX_MODEL_CATALOG_JSON")));
  if (!catalog.is_null()) codex.catalog = json::dump(catalog);
  return {};
}

Status read_opencode(CodingSettings& settings) {
  CodingSettings::OpenCode& opencode = settings.opencode;
  TRY_ASSIGN(std::string key, take_key(variable("OPENCODE_API_KEY")));
  opencode.has_key = !key.empty();
  if (opencode.has_key) settings.environments["opencode"]["OPENCODE_API_KEY"] = std::move(key);
  TRY_ASSIGN(opencode.model, take_name(variable("OPENCODE_MODEL"), kAnyPrintable));
  TRY_ASSIGN(opencode.provider, take_name(variable("OPENCODE_PROVIDER"), "-_."));
  TRY_ASSIGN(opencode.base_url, take_url(variable("OPENCODE_BASE_URL")));
  TRY_ASSIGN(opencode.npm, take_name(variable("OPENCODE_PROVIDER_NPM"), "@/-_."));
  TRY_ASSIGN(opencode.config, take_object(variable("OPENCODE_JSON")));
  return {};
}

}  // namespace

Result<CodingSettings> coding_from_env() {
  CodingSettings settings;
  TRY(read_codex(settings));
  TRY(read_opencode(settings));
  return settings;
}

}  // namespace caisson::services
