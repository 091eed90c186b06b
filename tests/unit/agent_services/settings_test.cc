// The agent's variables: bounds, sentences, and the table in agent/README.md. CAISSON_UPDATE=1 rewrites the table.
#include "agent/services/common/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "agent/services/common/service_limits.h"
#include "agent/settings.h"

namespace caisson::services {
namespace {

struct Set {
  Set(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Set() { ::unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;
  const char* name_;
};

TEST(Variables, TheTableOfTheReadmeIsCurrent) {
  const std::string path = CAISSON_SOURCE_DIR "/agent/README.md", begin = "settings.h -->\n", end = "<!-- end generated -->";
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  std::string text = read.str();
  const auto from = text.find(begin), to = text.find(end, from);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  const std::string now = text.substr(from + begin.size(), to - from - begin.size());
  if (std::getenv("CAISSON_UPDATE") == nullptr) {
    EXPECT_EQ(now, variables_text()) << "CAISSON_UPDATE=1 unit_agent_services rewrites it";
    return;
  }
  text.replace(from + begin.size(), now.size(), variables_text());
  std::ofstream(path) << text;
}

TEST(Variables, DefaultsAreWithinTheirBounds) {
  for (const Variable& row : kVariables) {
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    if (!row.is_number()) continue;
    EXPECT_LE(row.lowest, row.fallback) << row.name;
    EXPECT_LE(row.fallback, row.highest) << row.name;
  }
}

TEST(Variables, EveryBoundIsTheLastValueThatIsTaken) {
  for (const Variable& row : kVariables) {
    if (!row.is_number()) continue;
    const std::string name(row.name);
    for (const std::int64_t good : {row.lowest, row.highest}) {
      const Set set(name.c_str(), std::to_string(good).c_str());
      EXPECT_EQ(number_from_env(row).value_or(-2), good) << name;
    }
    for (const std::string& bad : {std::to_string(row.lowest - 1), std::to_string(row.highest + 1), std::string("8 MiB"),
                                   std::string("99999999999999999999"), std::string("0x10"), std::string(" 1")}) {
      const Set set(name.c_str(), bad.c_str());
      const auto got = number_from_env(row);
      ASSERT_FALSE(got) << name << "=" << bad;
      EXPECT_TRUE(got.error().text().contains(name + " must be a number from ")) << got.error().text();
      EXPECT_TRUE(got.error().text().contains(quote(bad))) << got.error().text();
    }
    const Set empty(name.c_str(), "");
    EXPECT_EQ(number_from_env(row).value_or(-2), row.fallback) << name << " that is empty is not set";
  }
}

TEST(Variables, ALimitThatMakesNoSenseIsAnError) {
  EXPECT_TRUE(config_from_env());
  const Set set("MAX_BASH_SESSIONS", "many");
  const auto config = config_from_env();
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Code::invalid_argument);
}

TEST(Variables, SettingsOfTheFrontDoorThatMakeNoSenseAreErrors) {
  const Set key("SANDBOX_API_KEY", "secret");
  EXPECT_TRUE(settings_from_env());
  for (const auto& [name, value] : std::map<const char*, const char*>{{"CAISSON_TRUSTED_PROXIES", "10.0.0.1/8"},
                                                                      {"CAISSON_ACCESS_LOG", "/etc/passwd"},
                                                                      {"CAISSON_REQUESTS_PER_SECOND", "-1"}}) {
    const Set again("SANDBOX_API_KEY", "secret"), wrong(name, value);
    const auto settings = settings_from_env();
    ASSERT_FALSE(settings) << name;
    EXPECT_TRUE(settings.error().text().contains(name)) << settings.error().text();
  }
}

}  // namespace
}  // namespace caisson::services
