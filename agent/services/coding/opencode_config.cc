#include "agent/services/coding/opencode_config.h"

#include "agent/services/coding/codex_config.h"
#include "agent/services/common/settings.h"

namespace caisson::services {
namespace {

// Members of objects are put together; anything else of `over` replaces what is there.
void put_over(json::Value& under, const json::Value& over) {
  for (const auto& [name, value] : over.items()) {
    const auto there = under.find(name);
    if (there != under.end() && there->is_object() && value.is_object()) put_over(*there, value);
    else under[name] = value;
  }
}

}  // namespace

std::string opencode_config(const CodingSettings::OpenCode& settings) {
  // Sessions cannot write where it is installed. Without the schema's name OpenCode would write that into the file.
  json::Value config{{"$schema", "https://opencode.ai/config.json"}, {"autoupdate", false}};
  const std::string ark(variable("OPENCODE_PROVIDER").text);
  const std::string provider = settings.provider.empty() ? ark : settings.provider;
  std::string model = settings.model;
  if (model.starts_with(provider + "/")) model.erase(0, provider.size() + 1);
  const bool known = settings.has_key || !model.empty() || !settings.provider.empty() || !settings.base_url.empty();
  if (known || !settings.npm.empty()) {
    json::Value entry{{"options", json::Value::object()}};
    const std::string url = settings.base_url.empty() && provider == ark ? std::string(kArkUrl) : settings.base_url;
    if (!url.empty()) entry["options"]["baseURL"] = url;
    if (settings.has_key) entry["options"]["apiKey"] = "{env:OPENCODE_API_KEY}";
    if (!settings.npm.empty()) entry["npm"] = settings.npm;
    if (!model.empty()) entry["models"][model] = json::Value::object();
    if (!model.empty()) config["model"] = provider + "/" + model;
    config["provider"][provider] = std::move(entry);
  }
  if (settings.config.is_object()) put_over(config, settings.config);
  return json::dump(config, 2);
}

}  // namespace caisson::services
