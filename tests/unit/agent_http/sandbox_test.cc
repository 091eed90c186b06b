#include "agent/routes/sandbox_info.h"

#include <gtest/gtest.h>

namespace caisson::routes {
namespace {

TEST(SandboxInfo, AnswersWithEveryRequiredField) {
  SandboxInfo info({.user = "gem", .home = "/home/gem", .workspace = "/work", .timezone = "", .port = 8080});
  const json::Value answer = encode(info.context());
  for (const char* name : {"success", "message", "data", "home_dir", "workspace", "version", "detail"})
    EXPECT_TRUE(answer.contains(name));
  const json::Value& system = answer["detail"]["system"];
  for (const char* name : {"os", "os_version", "arch", "user", "home_dir", "timezone"})
    EXPECT_TRUE(system[name].is_string()) << name;
  EXPECT_EQ(system["occupied_ports"], json::Value::array({"8080"}));
  EXPECT_EQ(system["timezone"], "UTC");
  EXPECT_TRUE(answer["detail"]["runtime"]["python"].is_array());
  EXPECT_TRUE(answer["data"].get<std::string>().starts_with("System Environment (v" CAISSON_VERSION ")"));
}

TEST(SandboxInfo, ItsTextFollowsPlacesAndTools) {
  SandboxInfo info({});
  EXPECT_EQ(info.text(), json::dump(encode(info.context())));
  info.set_places("/home/other", "/elsewhere");
  EXPECT_EQ(info.text(), json::dump(encode(info.context())));
  info.set_tools(parse_tools("git\t/usr/bin/git\t\n"));
  EXPECT_EQ(info.text(), json::dump(encode(info.context())));
}

TEST(ToolInventory, ProbeOutputIsRead) {
  const ToolInventory tools = parse_tools(
      "python3\t/usr/bin/python3\tPython 3.13.5\nnode\t/usr/bin/node\tv20.19.2\ngit\t/usr/bin/git\t\nevil\t/x\t\nno tabs\n");
  ASSERT_EQ(tools.python.size(), 1u);
  EXPECT_EQ(tools.python[0].ver, "3.13.5");
  EXPECT_EQ(tools.python[0].bin, "/usr/bin/python3");
  EXPECT_EQ(tools.nodejs.at(0).ver, "20.19.2");
  ASSERT_EQ(tools.utils.size(), 1u);
  EXPECT_EQ(tools.utils[0].tools.at(0).name, "git");
}

TEST(ToolInventory, HostileOutputIsBounded) {
  std::string output;
  for (int i = 0; i < 20000; ++i) output += "python3\t/p\t\x1b[2J3\ngit\t/g\t\n";
  const ToolInventory tools = parse_tools(output + std::string(1000, '\t'));
  EXPECT_EQ(tools.python.size(), 1u);
  EXPECT_EQ(tools.utils.at(0).tools.size(), 1u);
}

}  // namespace
}  // namespace caisson::routes
