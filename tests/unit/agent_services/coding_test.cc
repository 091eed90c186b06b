// The variables of Codex and OpenCode: what is refused at start, whose key is taken, and the files that follow from them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "agent/services/coding/codex_config.h"
#include "agent/services/coding/coding_settings.h"
#include "agent/services/coding/opencode_config.h"

namespace caisson::services {
namespace {

struct Given {
  Given(std::initializer_list<std::pair<const char*, std::string>> variables) {
    for (const auto& [name, value] : variables) ::setenv(names_.emplace_back(name).c_str(), value.c_str(), 1);
  }
  ~Given() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  std::vector<std::string> names_;
};

std::string codex_of(std::initializer_list<std::pair<const char*, std::string>> variables, std::string_view version = "0.155.1") {
  const Given given(variables);
  const auto settings = coding_from_env();
  return settings ? codex_config(settings->codex, version, "") : settings.error().text();
}

json::Value opencode_of(std::initializer_list<std::pair<const char*, std::string>> variables) {
  const Given given(variables);
  const auto settings = coding_from_env();
  return settings ? json::parse(opencode_config(settings->opencode)).value_or(json::Value())
                  : json::Value(settings.error().text());
}

TEST(Coding, AnInvalidValueIsRefusedByNameAndPlace) {
  const std::string long_text(200 * 1024, ' ');
  const std::tuple<const char*, std::string, const char*> kWrong[] = {
      {"CODEX_CONFIG_TOML", "a = 1\nb = = 2\n", "line 2, column 5 is not TOML"},
      {"CODEX_CONFIG_TOML", "a = 1\na = 2\n", "line 2"},
      {"CODEX_CONFIG_TOML", long_text, "longer than 131072 bytes"},
      {"CODEX_CONFIG_TOML", std::string(5000, '['), "is not TOML"},
      {"CODEX_MODEL_CATALOG_JSON", "{\"models\": [}", "line 1"},
      {"CODEX_MODEL_CATALOG_JSON", "[]", "must be a JSON object"},
      {"CODEX_MODEL_CATALOG_JSON", "", nullptr},
      {"CODEX_BASE_URL", "ftp://x/", "must be an address that begins with https:// or http://"},
      {"CODEX_BASE_URL", "https://me:pw@x/", "without a user"},
      {"CODEX_MODEL", "two words", "printable"},
      {"CODEX_MODEL", std::string(201, 'x'), "at most 200"},
      {"CODEX_API_KEY", "a b", "printable"},
      {"ARK_API_KEY", "a\nb", "printable"},
      {"OPENAI_API_KEY", std::string(4097, 'k'), "4096"},
      {"OPENCODE_API_KEY", "\x01", "printable"},
      {"OPENCODE_MODEL", "a\tb", "printable"},
      {"OPENCODE_PROVIDER", "a/b", "letters, digits and -_."},
      {"OPENCODE_PROVIDER_NPM", "x;y", "letters, digits and @/-_."},
      {"OPENCODE_BASE_URL", "localhost:1", "https://"},
      {"OPENCODE_JSON", "{\"a\": 1,\n \"a\": 2}", "line 2"},
      {"OPENCODE_JSON", "null", "must be a JSON object"},
  };
  for (const auto& [name, value, what] : kWrong) {
    const Given given({{name, value}});
    const auto settings = coding_from_env();
    ASSERT_EQ(settings.has_value(), what == nullptr) << name << "=" << value.substr(0, 80);
    if (settings) continue;
    const std::string said = settings.error().text();
    EXPECT_EQ(settings.error().code, Code::invalid_argument) << said;
    EXPECT_TRUE(said.starts_with(name)) << said;
    EXPECT_TRUE(said.contains(what)) << said;
    if (std::string_view(name).ends_with("_KEY")) EXPECT_FALSE(said.contains(value)) << said;
  }
}

TEST(Coding, TheFirstKeyThatIsSetIsTaken) {
  const std::tuple<std::vector<const char*>, std::string_view> kSets[] = {
      {{"CODEX_API_KEY", "ARK_API_KEY", "OPENAI_API_KEY"}, kOpenAiUrl},
      {{"ARK_API_KEY", "OPENAI_API_KEY"}, kArkUrl},
      {{"OPENAI_API_KEY"}, kOpenAiUrl},
      {{"CODEX_API_KEY", "OPENAI_API_KEY"}, kOpenAiUrl},
  };
  for (const auto& [names, url] : kSets) {
    for (const char* name : names) ::setenv(name, (std::string("key-of-") + name).c_str(), 1);
    const auto settings = coding_from_env();
    ASSERT_TRUE(settings) << settings.error().text();
    EXPECT_EQ(settings->environments.at("codex").at("CODEX_API_KEY"), std::string("key-of-") + names.front());
    for (const char* name : names) EXPECT_EQ(std::getenv(name), nullptr) << "a key stays in the environment";
    for (const char* name : names) EXPECT_TRUE(settings->environments.at("codex").contains(name));
    const std::string config = codex_config(settings->codex, "0.155.1", "");
    EXPECT_TRUE(config.contains(url)) << config;
    EXPECT_FALSE(config.contains("key-of-")) << "a key is in a file";
  }
}

TEST(Coding, WithoutVariablesThereIsNoProvider) {
  const std::string config = codex_of({});
  EXPECT_TRUE(config.contains("check_for_update_on_startup = false")) << config;
  EXPECT_FALSE(config.contains("model")) << config;
  const json::Value opencode = opencode_of({});
  EXPECT_EQ(opencode["autoupdate"], false);
  EXPECT_FALSE(opencode.contains("model") || opencode.contains("provider")) << json::dump(opencode);
}

TEST(Coding, WhatTheOperatorsOwnTomlSaysGoesFirst) {
  const std::string config =
      codex_of({{"CODEX_CONFIG_TOML", "model = 'mine'\nmodel_provider = 'own'\nsandbox_mode = 'read-only'\n"},
                {"CODEX_MODEL", "other"},
                {"CODEX_BASE_URL", "http://127.0.0.1:9/v1"}});
  EXPECT_TRUE(config.contains("'mine'")) << config;
  EXPECT_TRUE(config.contains("'read-only'")) << config;
  for (const char* absent : {"other", "127.0.0.1", "nested", "danger"}) EXPECT_FALSE(config.contains(absent)) << config;
}

TEST(Coding, CodexConfinesItsCommandsWhereItCan) {
  for (const char* version : {"0.155.1", "0.99.0"}) {
    EXPECT_TRUE(confines_by_landlock(version));
    const std::string config = codex_of({{"CODEX_CONFIG_TOML", "[features]\nweb = true\n"}}, version);
    for (const char* there : {"use_legacy_landlock = true", "default_permissions = 'nested'", "web = true"})
      EXPECT_TRUE(config.contains(there)) << config;
  }
  for (const char* version : {"0.156.0", "0.171.0", "1.0.0", "", "0.x"}) {
    EXPECT_FALSE(confines_by_landlock(version)) << version;
    EXPECT_TRUE(codex_of({}, version).contains("sandbox_mode = 'danger-full-access'")) << version;
  }
}

TEST(Coding, OpenCodesProviderIsMadeOfItsVariables) {
  const json::Value ark = opencode_of({{"OPENCODE_API_KEY", "secret"}, {"OPENCODE_MODEL", "ark/seed"}});
  EXPECT_EQ(ark["model"], "ark/seed");
  EXPECT_EQ(ark["provider"]["ark"]["options"], json::Value({{"apiKey", "{env:OPENCODE_API_KEY}"}, {"baseURL", kArkUrl}}));
  EXPECT_EQ(ark["provider"]["ark"]["models"], json::Value({{"seed", json::Value::object()}}));
  const json::Value own = opencode_of({{"OPENCODE_PROVIDER", "mine"},
                                       {"OPENCODE_BASE_URL", "http://127.0.0.1:9/v1"},
                                       {"OPENCODE_PROVIDER_NPM", "@ai-sdk/openai"},
                                       {"OPENCODE_MODEL", "m"},
                                       {"OPENCODE_JSON", R"({"model": "mine/n", "provider": {"mine": {"name": "Mine"}}})"}});
  EXPECT_EQ(own["model"], "mine/n");
  EXPECT_EQ(own["provider"]["mine"]["name"], "Mine");
  EXPECT_EQ(own["provider"]["mine"]["npm"], "@ai-sdk/openai");
  EXPECT_EQ(own["provider"]["mine"]["options"], json::Value({{"baseURL", "http://127.0.0.1:9/v1"}}));
}

}  // namespace
}  // namespace caisson::services
