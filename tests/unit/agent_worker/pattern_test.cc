// Glob patterns.
#include "agent/worker/pattern.h"

#include <gtest/gtest.h>

namespace caisson::worker {
namespace {

TEST(Pattern, NamesMatch) {
  for (const auto& [pattern, name] : {std::pair("*.py", "a.py"), std::pair("a?c", "abc"), std::pair("a?c", "aéc"),
                                      std::pair("[a-c]x", "bx"), std::pair("[!a]x", "bx"), std::pair("*a*b*", "xxaxxbxx"),
                                      std::pair("\\*", "*"), std::pair("[", "["), std::pair("*", ""), std::pair("[]]", "]")})
    EXPECT_TRUE(match_name(pattern, name)) << pattern << " " << name;
  for (const auto& [pattern, name] : {std::pair("*.py", "a.pyc"), std::pair("a?c", "ac"), std::pair("[a-c]", "d"),
                                      std::pair("[!a]", "a"), std::pair("", "x"), std::pair("\\*", "x")})
    EXPECT_FALSE(match_name(pattern, name)) << pattern << " " << name;
}

TEST(Pattern, StarsDoNotExplode) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_FALSE(match_name(pattern + "b", std::string(2000, 'a')));
}

TEST(Pattern, TwoStarsCrossDirectories) {
  EXPECT_TRUE(Pattern("**/*.py").matches("a.py"));
  EXPECT_TRUE(Pattern("**/*.py").matches("x/y/a.py"));
  EXPECT_TRUE(Pattern("src/**/test/*.{py,js}").matches("src/a/b/test/x.js"));
  EXPECT_FALSE(Pattern("src/*.py").matches("src/a/b.py"));
  EXPECT_FALSE(Pattern("*.py").matches("src/b.py"));
}

TEST(Pattern, ExclusionsHoldForWhatIsBelow) {
  EXPECT_TRUE(Pattern("node_modules").excludes("a/node_modules/b/c.js"));
  EXPECT_TRUE(Pattern("*.pyc").excludes("a/b.pyc"));
  EXPECT_TRUE(Pattern("build/out").excludes("build/out/x/y"));
  EXPECT_FALSE(Pattern("build/out").excludes("x/build/out"));
}

TEST(Pattern, DepthBoundsTheWalk) {
  EXPECT_EQ(Pattern("*.py").depth(), 1U);
  EXPECT_EQ(Pattern("a/{b,c/d}/*").depth(), 4U);
  EXPECT_EQ(Pattern("**/x").depth(), 0U);
}

TEST(Pattern, ManyAlternativesAreBounded) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "{a,b}";
  EXPECT_TRUE(Pattern(text).matches(std::string(30, 'a')));
}

}  // namespace
}  // namespace caisson::worker
