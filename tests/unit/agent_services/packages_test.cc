// What comes out of a session as a list of packages is not trusted.
#include "agent/services/workspace/packages.h"

#include <gtest/gtest.h>

#include "agent/services/program/run_once.h"

namespace caisson::services {
namespace {

TEST(Packages, AreSortedByName) {
  const auto found = parse_packages(R"([["numpy", "2.0"], ["attrs", "1"]])");
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].name, "attrs");
  EXPECT_EQ((*found)[1].version, "2.0");
}

TEST(Packages, AnythingButPairsOfStringsIsRefused) {
  for (const char* text : {"", "x", "{}", "[1]", R"([["a"]])", R"([["a", 1]])", R"([["a", "1", "2"]])", R"([["a", "1"]] [])",
                           R"([{"name": "a"}])", R"([["a", ["1"]]])"})
    EXPECT_FALSE(parse_packages(text)) << text;
}

TEST(Packages, NamesAndNumbersAreBounded) {
  EXPECT_FALSE(parse_packages("[[\"" + std::string(301, 'n') + "\", \"1\"]]"));
  std::string many = "[";
  for (int i = 0; i < 5001; ++i) many += (i == 0 ? "" : ",") + ("[\"p" + std::to_string(i) + "\",\"1\"]");
  EXPECT_FALSE(parse_packages(many + "]"));
  EXPECT_FALSE(parse_packages(std::string(600 * 1024, ' ') + "[]"));
}

TEST(RunOnce, SaysHowAProgramFailed) {
  EXPECT_EQ(failure_of({.exit_code = 0, .signal = "", .reason = "exit"}), "");
  EXPECT_EQ(failure_of({.exit_code = 3, .signal = "", .reason = "exit"}), "it exited with 3");
  EXPECT_EQ(failure_of({.exit_code = 139, .signal = "SIGSEGV", .reason = "signal"}), "it was ended by SIGSEGV");
  EXPECT_EQ(failure_of({.exit_code = 137, .signal = "SIGKILL", .reason = "hard_timeout"}), "it was killed after its time limit");
}

}  // namespace
}  // namespace caisson::services
