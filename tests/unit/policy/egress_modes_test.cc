// Rules where the network permits every host: they limit, and what is left out limits nothing any more.
#include <gtest/gtest.h>

#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

TEST(Egress, ALimitThatIsMissingWhereEveryHostIsPermittedNeedsAReason) {
  Directory dir;
  const std::string way = R"("network": "monitor", "weaken": [{"field": "/network", "why": "for the tests"}])";
  const std::string limit = R"({"host": "a.org", "inspect": true, "paths": ["/api"], "why": "for the tests"})";
  dir.write("parent.json", R"({"extends": "base", )" + way + R"(, "egress": [)" + limit + "]}");
  const auto child = [&dir](const std::string& rules) {
    dir.write("child.json", R"({"extends": "parent", "egress": [)" + rules + "]}");
    return dir.problems();
  };
  EXPECT_EQ(child(limit), Texts{});
  const Texts found = child("");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].contains("/egress: gives more than parent")) << found[0];
}

}  // namespace
}  // namespace caisson::policy
