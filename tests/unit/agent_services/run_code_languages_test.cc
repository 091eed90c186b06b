// Languages of /run_code: which row of the table is used, and the error for an unknown one.
#include "agent/services/code/run_code_languages.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace caisson::services {
namespace {

ToolInventory with(std::map<std::string, std::string> tools, std::string node = "") {
  ToolInventory out{.tools = std::move(tools)};
  if (!node.empty()) out.node.push_back({std::move(node), "/usr/bin/node"});
  return out;
}

TEST(RunCodeLanguages, TypeScriptIsRunByTheFirstThatIsThere) {
  EXPECT_EQ(choose_language("typescript", with({{"tsx", "/usr/bin/tsx"}}, "24.1.0")).value()->run, "tsx main.ts");
  const auto node = choose_language("typescript", with({{"esbuild", "/usr/bin/esbuild"}}, "24.1.0"));
  EXPECT_TRUE(node.value()->run.starts_with("node --experimental-transform-types"));
  const auto old = choose_language("typescript", with({{"esbuild", "/usr/bin/esbuild"}}, "20.19.2"));
  EXPECT_TRUE(old.value()->compile.starts_with("esbuild "));
  EXPECT_FALSE(choose_language("typescript", with({{"esbuild", "/usr/bin/esbuild"}})));  // nobody would run what it makes
  EXPECT_FALSE(choose_language("typescript", with({}, "22.6.0")));
  EXPECT_TRUE(choose_language("typescript", with({}, "22.10.0")));  // a number, no text
}

TEST(RunCodeLanguages, OneThatIsNotInstalledIsAnsweredWithThePackageThatHasIt) {
  const auto absent = choose_language("go", with({{"bash", "/usr/bin/bash"}}));
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::not_found);
  EXPECT_NE(absent.error().text().find("EXTRA_PACKAGES=\"golang-go\""), std::string::npos) << absent.error().text();
  EXPECT_TRUE(absent.error().text().ends_with("available: bash")) << absent.error().text();
}

TEST(RunCodeLanguages, OneThatNobodyKnowsIsAnsweredWithTheList) {
  const auto unknown = choose_language("cobol", with({{"bash", "/usr/bin/bash"}}));
  EXPECT_TRUE(unknown.error().text().ends_with("is not known; available: bash")) << unknown.error().text();
}

TEST(RunCodeLanguages, EveryLanguageSaysWhatWouldInstallIt) {
  for (const ProgramLanguage& one : program_languages()) {
    const bool said = std::ranges::any_of(
        program_languages(), [&](const ProgramLanguage& row) { return row.name == one.name && !row.packages.empty(); });
    EXPECT_TRUE(said) << one.name;
  }
}

TEST(RunCodeLanguages, ProgramsAreCalledByTheirPath) {
  EXPECT_EQ(command_words("bash main.sh", with({{"bash", "/usr/bin/bash"}})),
            (std::vector<std::string>{"/usr/bin/bash", "main.sh"}));
  EXPECT_EQ(command_words("./main", with({})), std::vector<std::string>{"./main"});
}

}  // namespace
}  // namespace caisson::services
