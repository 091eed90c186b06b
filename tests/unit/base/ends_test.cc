// The closed lists of ways to end and of limits.
#include "launcher/common/base/ends.h"

#include <gtest/gtest.h>

#include <set>

namespace caisson {
namespace {

TEST(Ends, NoWordIsInAListTwice) {
  for (const std::string_view list : {kSessionEnds, kCommandEnds, kLimitHits}) {
    std::set<std::string_view> words;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count_words(list)); ++i)
      EXPECT_TRUE(words.insert(word(list, i)).second) << word(list, i);
  }
}

TEST(Ends, AWordOfAListIsItself) {
  EXPECT_EQ(SessionEnd("client_gone").text, "client_gone");
  EXPECT_EQ(CommandEnd("hard_timeout").text, "hard_timeout");
  EXPECT_EQ(LimitHit("workspace_disk").text, "workspace_disk");
}

}  // namespace
}  // namespace caisson
