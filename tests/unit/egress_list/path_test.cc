// Paths that rules and bindings permit, and requests that are at one of them.
#include "launcher/egress/list/path.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

TEST(Path, WhatMeansSomethingElseIsNotPlain) {
  for (const std::string plain : {"/", "/a", "/a/b.c", "/a/", "/a%20b", "/a?x=/../", "/%C3%a4", "/%e2%82%ac"})
    EXPECT_TRUE(is_plain_path(plain)) << plain;
  for (const std::string other : {"",           "*",       "a",      "//",   "/a//b", "/.",      "/a/..",      "/../a",
                                  "/a;b",       "/a\\b",   "/%2e",   "/%2F", "/%5c",  "/%252e",  "/%0a",       "/%",
                                  "/%2",        "/%u002e", "/%-1",   "/%+1", "/%7f",  "/%c0%ae", "/%e0%80%ae", "/%f0%80%80%ae",
                                  "/%ed%a0%80", "/%ff",    "/%e2%82"})
    EXPECT_FALSE(is_plain_path(other)) << other;
}

TEST(Path, IsPermittedByWholeSegments) {
  for (const std::string target : {"/api", "/api/", "/api/x", "/api?q", "/api/x?q=/../"})
    EXPECT_TRUE(is_at_path(target, "/api")) << target;
  for (const std::string target : {"/", "/apis", "/ap", "/API", "/x/api", "/api;x", "/api/../x", "/api//x", "/api/%2e%2e/x",
                                   "/%61pi", "/api%2fx", "/api\\x", "*", ""})
    EXPECT_FALSE(is_at_path(target, "/api")) << target;
  EXPECT_TRUE(is_at_path("/api/x", "/api/") && is_at_path("/api/", "/api/") && is_at_path("/x", "/"));
  EXPECT_FALSE(is_at_path("/api", "/api/") || is_at_path("/a/../b", "/"));
  const std::vector<std::string> both{"/api/", "/repos/acme"};
  EXPECT_TRUE(is_at_path("/api/x", both) && is_at_path("/repos/acme/one", both));
  EXPECT_FALSE(is_at_path("/repos/other", both) || is_at_path("/repos/acme/..", both) ||
               is_at_path("/", std::vector<std::string>()));
  EXPECT_EQ(paths_text(both), "/api/, /repos/acme");
}

TEST(Path, ThatNoRequestCouldHaveIsNone) {
  for (const std::string good : {"/", "/api", "/api/", "/a.b/c-d_e~", "/@scope/name"}) EXPECT_EQ(fault_of_path(good), "") << good;
  for (const std::string bad :
       {"", "api", "/a?b", "/a#b", "/%41", "/a\\b", "/a b", "/a//b", "/a/../b", "/.", "/a;b", "/\xc3\xa9", "/\n"})
    EXPECT_NE(fault_of_path(bad), "") << bad;
  EXPECT_EQ(fault_of_path("/" + std::string(kMaxPathBytes - 1, 'a')), "");
  EXPECT_NE(fault_of_path("/" + std::string(kMaxPathBytes, 'a')), "");
}

}  // namespace
}  // namespace caisson::egress
