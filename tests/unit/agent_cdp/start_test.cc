// Chromium's start: its arguments, its policies, its profile; and the commands of the agent.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/cdp/browser.h"
#include "agent/cdp/control.h"
#include "agent/cdp/flags.h"
#include "agent/cdp/pages.h"
#include "agent/cdp/policies.h"

namespace caisson::cdp {
namespace {

std::string why_not(const std::string& argument) {
  const auto checked = check_extra({argument}, "/home/u");
  return checked ? "" : checked.error().what;
}

TEST(CdpFlags, WhatTakesAWallAwayIsRefusedByName) {
  for (const char* argument : {"--no-sandbox",
                               "--disable-seccomp-filter-sandbox",
                               "--disable-setuid-sandbox",
                               "--disable-namespace-sandbox",
                               "-no-sandbox",
                               " --no-sandbox",
                               "--No-Sandbox",
                               "--disable-features=NetworkServiceSandbox",
                               "--gpu-sandbox-failures-fatal=no",
                               "--remote-debugging-port=9222",
                               "--remote-debugging-pipe",
                               "-remote-debugging-address=0.0.0.0",
                               "--user-data-dir=/tmp/x",
                               "--user-data-dir",
                               "--single-process",
                               "\t--single-process",
                               "--no-zygote",
                               "--no-zygote-sandbox",
                               "--load-extension=/tmp/x",
                               "--load-extension=/home/u/a,/etc/x",
                               "--load-extension=/home/u/../x",
                               "--load-extension",
                               "--load-extension=",
                               "--renderer-cmd-prefix=gdb",
                               "--enable-unsafe-extension-debugging",
                               "--",
                               "-",
                               "",
                               "--a\nb",
                               "/bin/sh",
                               "chrome://quit"})
    EXPECT_TRUE(why_not(argument).contains(quote(argument))) << argument << ": " << why_not(argument);
}

TEST(CdpFlags, WhatAnOperatorMayAddIsTaken) {
  for (const char* argument :
       {"--window-size=800,600", "--headless=new", "--proxy-server=http://p:1", "--load-extension=/home/u/ext",
        "--load-extension=/home/u/a,/home/u/b", "https://example.org/", "about:blank", "file:///tmp/a.html"})
    EXPECT_EQ(why_not(argument), "") << argument;
  EXPECT_FALSE(check_extra(std::vector<std::string>(65, "--a"), "/home/u"));
}

TEST(CdpFlags, FeaturesArePutTogetherSinceTheLastListWins) {
  const auto line = command_line({.program = "/c",
                                  .profile = "/p",
                                  .home = "/home/u",
                                  .locale = "de",
                                  .url = "about:blank",
                                  .extra = {"--enable-features=A,B", "--disable-features=C", "--x"}});
  const auto with = [&](std::string_view begin) {
    return std::ranges::count_if(line, [&](const std::string& word) { return word.starts_with(begin); });
  };
  EXPECT_EQ(with("--enable-features="), 1);
  EXPECT_EQ(with("--enable-features=NetworkServiceSandbox,A,B"), 1);
  EXPECT_EQ(with("--disable-features="), 1);
  EXPECT_EQ(with("--user-data-dir=/p"), 1);
  EXPECT_EQ(with("--remote-debugging-pipe"), 1);
  EXPECT_EQ(with("--lang=de"), 1);
  EXPECT_EQ(with("--no-sandbox"), 0);
  EXPECT_EQ(line.back(), "about:blank");
}

TEST(CdpFlags, LocalesAndAddressesAreChecked) {
  EXPECT_TRUE(is_locale("pt-BR"));
  for (const char* bad : {"", "d", "de DE", "../de", "abcdefghijklmnopq"}) EXPECT_FALSE(is_locale(bad)) << bad;
  for (const char* bad : {"", "--no-sandbox", "chrome://quit", "file://host/x", "javascript:1", "http://a b"})
    EXPECT_FALSE(is_first_url(bad)) << bad;
}

class CdpFolder : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/caisson-cdp-XXXXXX";
    folder = ::mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string folder;
};

TEST_F(CdpFolder, StaleLocksOfTheProfileAreRemovedAndNothingElse) {
  std::filesystem::create_symlink("host-123", folder + "/SingletonLock");
  std::filesystem::create_symlink("/nowhere", folder + "/SingletonSocket");
  std::ofstream(folder + "/Cookies") << "x";
  ASSERT_TRUE(prepare_profile(folder));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(folder + "/SingletonLock")));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(folder + "/SingletonSocket")));
  EXPECT_TRUE(std::filesystem::exists(folder + "/Cookies"));
}

TEST_F(CdpFolder, PoliciesAreOneFileThatFollowsNoLink) {
  Wishes wishes;
  wishes.url_blocklist = std::vector<std::string>{"example.org"};
  wishes.allow_file_selection_dialogs = false;
  std::filesystem::create_symlink(folder + "/elsewhere", folder + "/caisson.next");
  EXPECT_FALSE(write_policies(folder, policies(wishes, "/home/u")));
  std::filesystem::remove(folder + "/caisson.next");
  ASSERT_TRUE(write_policies(folder, policies(wishes, "/home/u")));
  std::ifstream file(folder + "/caisson.json");
  const json::Value written = json::parse(std::string(std::istreambuf_iterator<char>(file), {})).value();
  EXPECT_EQ(written["DownloadDirectory"], "/home/u/Downloads");
  EXPECT_EQ(written["URLBlocklist"], (json::Value{"example.org"}));
  EXPECT_EQ(written["AllowFileSelectionDialogs"], false);
  EXPECT_FALSE(written.contains("URLAllowlist"));
}

TEST(CdpControl, CommandsAreRead) {
  EXPECT_EQ(read_command(R"({"do":"hold"})")->what, Do::hold);
  EXPECT_EQ(read_command(R"({"do":"end"})")->what, Do::end);
  const auto restart =
      read_command(R"({"do":"restart","url_blocklist":["a.b","*"],"url_allowlist":[],"allow_file_selection_dialogs":true,)"
                   R"("locale":"de","url":"about:blank"})");
  ASSERT_TRUE(restart);
  EXPECT_EQ(restart->wishes.url_blocklist->size(), 2u);
  EXPECT_EQ(restart->wishes.url_allowlist->size(), 0u);
  EXPECT_EQ(restart->wishes.locale, "de");
}

TEST(CdpControl, WhatIsNoCommandIsRefused) {
  for (const char* line :
       {"", "{}", "[]", "hold", R"({"do":"quit"})", R"({"do":1})", R"({"do":"hold","x":1})",
        R"({"do":"hold","url":"about:blank"})", R"({"do":"restart","url_blocklist":"a"})",
        R"({"do":"restart","url_blocklist":[1]})", R"({"do":"restart","url_blocklist":[""]})",
        R"({"do":"restart","locale":"--no"})", R"({"do":"restart","url":"--no-sandbox"})", R"({"do":"restart","args":["--x"]})",
        R"({"do":"restart","allow_file_selection_dialogs":"yes"})", R"({"do":"hold","do":"end"})"})
    EXPECT_FALSE(read_command(line)) << line;
}

TEST(CdpPages, TheLastPagesEndAsksForAnother) {
  Pages pages;
  const auto created = [&](const char* id) {
    return pages.heard("Target.targetCreated", std::string(R"({"targetInfo":{"targetId":")") + id + R"("}})");
  };
  const auto destroyed = [&](const char* id) {
    return pages.heard("Target.targetDestroyed", std::string(R"({"targetId":")") + id + R"("})");
  };
  EXPECT_FALSE(destroyed("a"));
  EXPECT_FALSE(created("a"));
  EXPECT_FALSE(created("b"));
  EXPECT_FALSE(destroyed("a"));
  EXPECT_FALSE(destroyed("a"));
  EXPECT_TRUE(destroyed("b"));
}

}  // namespace
}  // namespace caisson::cdp
