#include "agent/services/coding/codex_config.h"

#include <charconv>
#include <sstream>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace caisson::services {
namespace {

constexpr int kFirstWithoutLandlock = 156;  // the minor number of Codex 0.156
constexpr const char* kProvider = "caisson";

toml::table parsed_toml(std::string_view text) {
  toml::parse_result result = toml::parse(text);
  return result ? std::move(result).table() : toml::table();  // it was checked at start
}

// Landlock cannot take a folder out of one that is writable, so those that Codex would protect are named as writable.
toml::table nested_permissions() {
  toml::table roots{{".", "write"}, {".git", "write"}, {".codex", "write"}, {".agents", "write"}};
  return toml::table{{"filesystem", toml::table{{":root", "read"}, {":workspace_roots", std::move(roots)}}}};
}

void add_confinement(toml::table& config, std::string_view version) {
  for (const char* own : {"sandbox_mode", "default_permissions", "permissions", "profile"})
    if (config.contains(own)) return;
  if (!confines_by_landlock(version)) {  // bubblewrap cannot run here: the session's walls are the command's
    config.insert("sandbox_mode", "danger-full-access");
    return;
  }
  config.insert("features", toml::table());
  if (toml::table* const features = config["features"].as_table()) features->insert_or_assign("use_legacy_landlock", true);
  config.insert("default_permissions", "nested");
  config.insert("permissions", toml::table{{"nested", nested_permissions()}});
}

void add_provider(toml::table& config, const CodingSettings::Codex& settings) {
  const std::string& url = settings.base_url.empty() ? settings.key_url : settings.base_url;
  if (url.empty() || config.contains("model_provider")) return;
  config.insert("model_provider", kProvider);
  config.insert("model_providers", toml::table());
  toml::table* const providers = config["model_providers"].as_table();
  if (providers == nullptr) return;
  providers->insert(kProvider, toml::table());
  toml::table* const provider = (*providers)[kProvider].as_table();
  if (provider == nullptr) return;
  provider->insert("name", kProvider);
  provider->insert("base_url", url);
  provider->insert("wire_api", "responses");
  if (settings.has_key) provider->insert("env_key", kCodexKeyName);
}

}  // namespace

Status check_toml(std::string_view text) {
  const toml::parse_result result = toml::parse(text);
  if (result) return {};
  const toml::source_position at = result.error().source().begin;
  return fail(Code::invalid_argument, "line " + std::to_string(at.line) + ", column " + std::to_string(at.column) +
                                          " is not TOML: " + quote(result.error().description()));
}

bool confines_by_landlock(std::string_view version) {
  int minor = 0;
  if (!version.starts_with("0.")) return false;
  version.remove_prefix(2);
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), minor);
  return error == std::errc() && minor < kFirstWithoutLandlock;
}

std::string codex_config(const CodingSettings::Codex& settings, std::string_view version, const std::string& catalog) {
  toml::table config = parsed_toml(settings.config);
  if (!settings.model.empty()) config.insert("model", settings.model);
  if (!catalog.empty()) config.insert("model_catalog_json", catalog);
  config.insert("check_for_update_on_startup", false);  // sessions cannot write where it is installed
  add_provider(config, settings);
  add_confinement(config, version);
  std::ostringstream out;
  out << toml::toml_formatter(config);
  return std::move(out).str();
}

}  // namespace caisson::services
