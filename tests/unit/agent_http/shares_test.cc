#include <gtest/gtest.h>

#include "agent/auth/claims.h"
#include "agent/auth/logins.h"
#include "agent/auth/minted.h"
#include "agent/auth/tickets.h"

namespace caisson::auth {
namespace {

const auto kNow = std::chrono::steady_clock::now();

Principal of(std::string root, std::string subject = "") { return {.root = std::move(root), .subject = std::move(subject)}; }

http::Request with_cookie(const Logins& logins, const std::string& value) {
  const std::string set = logins.set_cookie({}, value, false);
  http::Request request;
  request.headers = {{"cookie", set.substr(0, set.find(';'))}};
  return request;
}

TEST(Shares, ManyLoginsOfOneRootEndItsOwn) {
  Logins logins;
  const http::Request operators = with_cookie(logins, logins.open({}, of("key:a"), {}, "", kNow));
  for (std::size_t i = 0; i < 2 * Logins::kMaxLogins; ++i)
    (void)logins.open({}, of("jwt:b"), {}, "", kNow + std::chrono::milliseconds(i));
  EXPECT_NE(logins.find(operators, true, kNow + std::chrono::seconds(3)), nullptr);
}

TEST(Shares, ManyTokensOfOneMinterDoNotMultiplyItsShareOfLogins) {
  Logins logins;
  const http::Request operators = with_cookie(logins, logins.open({}, of("key:a"), {}, "", kNow));
  for (std::size_t i = 0; i < 2 * Logins::kMaxLogins; ++i)
    (void)logins.open({}, of("minted:" + std::to_string(i), "jwt:b/ann"), {}, "", kNow + std::chrono::milliseconds(i));
  EXPECT_NE(logins.find(operators, true, kNow + std::chrono::seconds(3)), nullptr);
}

TEST(Shares, ATokenThatWasHandedOnDoesNotEndItsMintersLogin) {
  Logins logins;
  const http::Request minters = with_cookie(logins, logins.open({}, of("key:a"), {}, "", kNow));
  for (std::size_t i = 0; i < 2 * Logins::kMaxLogins; ++i)
    (void)logins.open({}, of("minted:1", "key:a"), {}, "", kNow + std::chrono::milliseconds(i));
  EXPECT_NE(logins.find(minters, true, kNow + std::chrono::seconds(3)), nullptr);
}

TEST(Shares, ManyTicketsOfOneRootEndItsOwn) {
  Tickets tickets(std::chrono::seconds(30));
  const std::string others = tickets.issue(of("key:a"), false, kNow);
  for (std::size_t i = 0; i < 2 * Tickets::kMaxTickets; ++i) (void)tickets.issue(of("jwt:b"), false, kNow);
  EXPECT_EQ(tickets.size(), Tickets::kShare + 1);
  EXPECT_TRUE(tickets.redeem(others, {}, true, kNow));
}

std::size_t mint_all(MintedTokens& tokens, const Principal& minter, std::size_t count) {
  std::size_t made = 0;
  for (std::size_t i = 0; i < count; ++i) made += tokens.mint(minter, std::to_string(i), {}, 1000, 1).has_value();
  return made;
}

TEST(Shares, MintingStopsForTheMinterAtItsShareAlone) {
  MintedTokens tokens;
  EXPECT_EQ(mint_all(tokens, of("key:a"), MintedTokens::kShare + 10), MintedTokens::kShare);
  EXPECT_TRUE(tokens.mint(of("key:b"), "x", {}, 1000, 1));
}

TEST(Shares, AFullTableOfTokensStopsNoMinterWithFewer) {
  MintedTokens tokens;
  for (std::size_t i = 0; i < MintedTokens::kMaxTokens / MintedTokens::kShare; ++i)
    (void)mint_all(tokens, of("key:" + std::to_string(i)), MintedTokens::kShare);
  EXPECT_TRUE(tokens.mint(of("key:z"), "x", {}, 1000, 1));
}

TEST(Shares, UsersOfOneSigningKeyShareNoLabelListOrRevocation) {
  MintedTokens tokens;
  const Principal ann = of("jwt:k", "jwt:k/ann"), bob = of("jwt:k", "jwt:k/bob");
  const std::string id = (*tokens.mint(ann, "x", {}, 1000, 1))->id;
  EXPECT_NE((*tokens.mint(bob, "x", {}, 2000, 1))->id, id);
  EXPECT_EQ(tokens.by_id(id, 1)->ends, 1000);
  EXPECT_EQ(tokens.seen_by(bob, 1).size(), 1u);
  EXPECT_FALSE(tokens.revoke(bob, id, 1));
  EXPECT_TRUE(tokens.revoke(of("key:operator"), id, 1));
}

TEST(Shares, IssuerAndSubjectTellUsersApart) {
  const auto subject = [](const char* claims) { return principal_of_claims(claims, {}, {}, 1)->subject; };
  EXPECT_NE(subject(R"({"exp":100,"iss":"i","sub":"ann"})"), subject(R"({"exp":100,"iss":"i","sub":"bob"})"));
  EXPECT_NE(subject(R"({"exp":100,"iss":"i","sub":"ann"})"), subject(R"({"exp":100,"iss":"j","sub":"ann"})"));
  EXPECT_EQ(subject(R"({"exp":100,"iss":"i","sub":"ann"})"), subject(R"({"exp":200,"iss":"i","sub":"ann"})"));
}

}  // namespace
}  // namespace caisson::auth
