// "extends" names any other policy: chains, what each link may add, and what cannot be.
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

TEST(Extends, AChainNarrowsLinkByLink) {
  Directory dir;
  dir.write("mid.json", R"({"extends": "base", "limits": {"processes": 100}, "network": "none"})");
  dir.write("d.json", R"({"extends": "mid", "limits": {"processes": 50}})");
  const auto policy = dir.policy();
  EXPECT_EQ(policy->limits.processes, 50U);
  EXPECT_EQ(policy->network, Network::none);
  EXPECT_EQ(policy->layers, (Texts{"base.json", "mid.json", "d.json"}));
}

TEST(Extends, MoreThanTheParentNeedsItsReasonEvenWhereBaseGivesIt) {
  Directory dir;
  dir.write("mid.json", R"({"extends": "base", "limits": {"processes": 100}})");
  dir.write("d.json", "{\"extends\": \"mid\",\n\"limits\": {\"processes\": 200}}");
  EXPECT_EQ(dir.problems(),
            Texts{"d.json:2 /limits/processes: gives more than mid: 200 instead of 100; if this is intended, give a "
                  "reason in weaken: {\"field\": \"/limits/processes\", \"why\": \"…\"}"});
}

TEST(Extends, OnlyReasonsThatBaseStillNeedsAreKept) {
  Directory dir;
  dir.write("mid.json", R"({"extends": "base", "limits": {"processes": 600, "execs": 70},
    "weaken": [{"field": "/limits/processes", "why": "the parent's"}, {"field": "/limits/execs", "why": "the parent's"}]})");
  dir.write("d.json", R"({"extends": "mid", "limits": {"processes": 10}})");
  EXPECT_EQ(dir.policy()->weaken, (std::map<std::string, std::string>{{"/limits/execs", "the parent's"}}));
}

TEST(Extends, AReasonDoesNotOutliveItsValue) {
  Directory dir;
  dir.write("mid.json",
            R"({"extends": "base", "limits": {"processes": 100}, "why": {"/limits/processes": "a hundred", "/tmp": "as is"}})");
  dir.write("d.json", R"({"extends": "mid", "limits": {"processes": 50}})");
  EXPECT_EQ(dir.policy()->why, (std::map<std::string, std::string>{{"/tmp", "as is"}}));
}

TEST(Extends, WhatIsNotThereIsNamedWithWhatWasMeant) {
  Directory dir;
  dir.write("shell.json", R"({"extends": "base"})");
  dir.write("d.json", R"({"extends": "shlel"})");
  EXPECT_EQ(dir.problems(), Texts{"d.json:1 /extends: there is no 'shlel.json'; meant 'shell'?"});
  dir.write("d.json", "{}");
  EXPECT_EQ(dir.problems(), Texts{"d.json:1: field 'extends' is missing: \"base\", or another domain's name"});
}

TEST(Extends, ACircleIsAProblemAndEnds) {
  Directory dir;
  dir.write("d.json", R"({"extends": "e"})");
  dir.write("e.json", R"({"extends": "f"})");
  dir.write("f.json", R"({"extends": "d"})");
  EXPECT_EQ(dir.problems(), Texts{"f.json:1 /extends: extends itself through 'd'"});
  dir.remove("e.json"), dir.remove("f.json");
  dir.write("d.json", R"({"extends": "d"})");
  EXPECT_EQ(dir.problems(), Texts{"d.json:1 /extends: extends itself through 'd'"});
}

TEST(Extends, AChainHasFourFilesAtMost) {
  Directory dir;
  dir.write("d.json", R"({"extends": "c2"})");
  dir.write("c2.json", R"({"extends": "c1"})");
  dir.write("c1.json", R"({"extends": "base"})");
  EXPECT_EQ(dir.problems(), Texts{});
  dir.write("e.json", R"({"extends": "d"})");
  EXPECT_EQ(dir.problems(), Texts{"e.json:1 /extends: is the fifth file of a chain; a chain has at most four"});
}

TEST(Extends, AParentWithAProblemIsToldOnce) {
  Directory dir;
  dir.write("mid.json", R"({"extends": "base", "umask": "9"})");
  dir.write("d.json", R"({"extends": "mid"})");
  EXPECT_EQ(dir.problems(), Texts{"mid.json:1 /umask: must be a string of three octal digits, such as \"022\""});
}

TEST(Extends, OneDomainAloneBringsItsParents) {
  Directory dir;
  dir.write("mid.json", R"({"extends": "base", "limits": {"processes": 100}})");
  dir.write("d.json", R"({"extends": "mid"})");
  const auto loaded = load_directory(dir.path(), {"d", ""});
  ASSERT_EQ(loaded.policies.size(), 1U);
  EXPECT_EQ(loaded.policies.at("d")->limits.processes, 100U);
}

}  // namespace
}  // namespace caisson::policy
