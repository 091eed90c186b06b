// Grants: whose they are, and the form in which they are told.
#include <gtest/gtest.h>

#include "launcher/egress/list/grant.h"

namespace caisson::egress {
namespace {

Host host(const char* text) { return *read_host(text); }

Grants some() {
  return {{.id = 1, .domain = "bash", .session = "s-1", .host = host("api.test"), .port = 443, .once = true},
          {.id = 2, .domain = "bash", .host = host("2a00:2::34"), .port = 8080},
          {.id = 3, .domain = "code", .session = "s-2", .host = host("192.0.2.1"), .port = 1, .once = true, .used = true}};
}

std::uint32_t found(Grants grants, const char* domain, const char* session, const char* at, std::uint16_t port) {
  const Grant* grant = find_grant(grants, {domain, session}, host(at), port);
  return grant != nullptr ? grant->id : 0;
}

TEST(Grant, IsForOneHostPortDomainAndSession) {
  EXPECT_EQ(found(some(), "bash", "s-1", "api.test", 443), 1U);
  EXPECT_EQ(found(some(), "bash", "s-9", "api.test", 443), 0U);
  EXPECT_EQ(found(some(), "code", "s-1", "api.test", 443), 0U);
  EXPECT_EQ(found(some(), "bash", "s-1", "api.test", 80), 0U);
  EXPECT_EQ(found(some(), "bash", "s-1", "a.api.test", 443), 0U);
  EXPECT_EQ(found(some(), "bash", "s-9", "2a00:2::34", 8080), 2U);
  EXPECT_EQ(found(some(), "code", "", "192.0.2.1", 1), 3U) << "without a session those of all count";
}

TEST(Grant, OneThatIsForMoreThanOneConnectionIsUsedFirst) {
  Grants grants = some();
  grants.push_back({.id = 4, .domain = "bash", .host = host("api.test"), .port = 443});
  EXPECT_EQ(found(grants, "bash", "s-1", "api.test", 443), 4U);
}

TEST(Grant, AConnectionGoesOnWithItsOwnAndOthersUseOneThatIsLeft) {
  Grants grants = some();
  grants.front().used = true;
  grants.push_back({.id = 5, .domain = "bash", .session = "s-1", .host = host("api.test"), .port = 443, .once = true});
  EXPECT_EQ(find_grant(grants, {"bash", "s-1"}, host("api.test"), 443, 1)->id, 1U);
  EXPECT_EQ(find_grant(grants, {"bash", "s-1"}, host("api.test"), 443)->id, 5U);
  std::swap(grants.front(), grants.back());
  EXPECT_EQ(find_grant(grants, {"bash", "s-1"}, host("api.test"), 443)->id, 5U);
}

TEST(Grant, IsReadAsItWasWritten) {
  const std::string bytes = grant_bytes(some());
  const auto read = read_grants(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(grant_bytes(*read), bytes);
  ASSERT_EQ(read->size(), 3U);
  EXPECT_TRUE((*read)[0].once && !(*read)[0].used && !(*read)[1].once && (*read)[2].used);
  EXPECT_TRUE(read_grants("")->empty());
}

TEST(Grant, WhatIsNoneIsRefused) {
  for (const char* bytes :
       {"x", "\n", "1 once bash s-1 api.test 443", "1 once bash s-1 api.test\n", "0 once bash s-1 api.test 443\n",
        "1 twice bash s-1 api.test 443\n", "1 once bash s-1 API.test 443\n", "1 once bash s-1 api.test 0\n",
        "1 once bash s-1 api.test 65536\n", "1 once bash s-1 api.test 443 x\n", "1 once  s-1 api.test 443\n",
        "-1 once bash s-1 api.test 443\n", "1 once bash - ..  443\n"})
    EXPECT_FALSE(read_grants(bytes)) << bytes;
  Grants many(kMaxGrants + 1, some().front());
  EXPECT_FALSE(read_grants(grant_bytes(many)));
}

}  // namespace
}  // namespace caisson::egress
