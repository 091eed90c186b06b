// What the server handed out ends with its workspace, and with the login from which it came.
#include "gate_fixture.h"

namespace caisson::auth {
namespace {

struct LifeTest : OneKeyGate {
  static Principal of(Principal from, std::string_view workspace) {
    from.bounds.workspace = workspace;
    return from;
  }
  [[nodiscard]] Principal by_ticket(Principal from) {
    return *gate.identify(asking("/p?ticket=" + gate.issue_ticket(std::move(from), false, now)), Door::inside, false, now);
  }
  // The request of a page with the cookie of a new login.
  [[nodiscard]] http::Request page_of(Principal from, std::string_view path) {
    const std::string value = gate.open_login({}, std::move(from), prefix(path), "", now);
    const std::string set = gate.logins.set_cookie(prefix(path), value, false);
    return asking(path, {{"cookie", set.substr(0, set.find(';'))}, {"x-caisson-page", gate.logins.token_of(value)}});
  }
  [[nodiscard]] bool opens(const http::Request& page) { return gate.identify(page, Door::inside, false, now).has_value(); }
  [[nodiscard]] Principal of_page(const http::Request& page) { return *gate.identify(page, Door::api, false, now); }
};

TEST_F(LifeTest, TokensTicketsAndLoginsOfAWorkspaceEndWithIt) {
  const auto token = gate.mint(owner, "t", of(owner, "w1").bounds, now.seconds + 60, now);
  ASSERT_TRUE(token);
  const std::string secret = gate.minted.secret_of(**token), ticket = gate.issue_ticket(of(owner, "w1"), false, now);
  const http::Request page = page_of(of(owner, "w1"), "/p");
  EXPECT_TRUE(gate.by_secret("192.0.2.1", secret, now));
  gate.workspace_ended("w1");
  EXPECT_FALSE(gate.by_secret("192.0.2.1", secret, now));
  EXPECT_FALSE(gate.identify(asking("/p?ticket=" + ticket), Door::inside, false, now));
  EXPECT_FALSE(opens(page));
  EXPECT_TRUE(gate.minted.seen_by(owner, now.seconds).empty());
  EXPECT_EQ(gate.tickets.size(), 0U);
}

TEST_F(LifeTest, ALaterWorkspaceOfThatNameHasCredentialsOfItsOwn) {
  const auto old = gate.mint(owner, "t", of(owner, "w1").bounds, now.seconds + 60, now);
  const std::string secret = gate.minted.secret_of(**old);
  gate.workspace_ended("w1");
  const auto anew = gate.mint(owner, "t", of(owner, "w1").bounds, now.seconds + 60, now);
  ASSERT_TRUE(anew);
  EXPECT_NE(gate.minted.secret_of(**anew), secret);
  EXPECT_TRUE(gate.by_secret("192.0.2.1", gate.minted.secret_of(**anew), now));
}

TEST_F(LifeTest, WhatIsOpenEndsAndWhatItDerivesLaterIsDead) {
  const Principal open = by_ticket(of(owner, "w1"));
  EXPECT_TRUE(gate.is_rooted(open, now));
  gate.workspace_ended("w1");
  EXPECT_FALSE(gate.is_rooted(open, now));
  const std::string late = gate.issue_ticket(open, false, now);
  EXPECT_FALSE(gate.identify(asking("/p?ticket=" + late), Door::inside, false, now));
  EXPECT_FALSE(opens(page_of(open, "/p")));
  EXPECT_FALSE(gate.mint(open, "late", open.bounds, now.seconds + 60, now));
}

TEST_F(LifeTest, OtherWorkspacesAndTheOperatorsOwnCredentialsGoOn) {
  const Principal other = by_ticket(of(owner, "w2")), unbound = by_ticket(owner);
  gate.workspace_ended("w1");
  EXPECT_TRUE(gate.is_rooted(other, now));
  EXPECT_TRUE(gate.is_rooted(unbound, now));
  EXPECT_TRUE(gate.is_rooted(of(owner, "w1"), now)) << "a key of the operator's names a workspace, not one of its lives";
}

TEST_F(LifeTest, LoggingOutEndsAllThatThePageOpened) {
  const http::Request page = page_of(owner, "/");
  const Principal inside = of_page(page);
  const std::string ticket = gate.issue_ticket(inside, false, now);
  const http::Request preview = page_of(by_ticket(inside), "/proxy/5173");
  const Principal socket = by_ticket(inside);
  EXPECT_TRUE(opens(preview));
  gate.log_out(page);
  EXPECT_FALSE(opens(preview));
  EXPECT_FALSE(gate.is_rooted(socket, now));
  EXPECT_FALSE(gate.identify(asking("/p?ticket=" + ticket), Door::inside, false, now));
}

TEST_F(LifeTest, LoggingOutEndsNeitherAnothersLoginNorThatFromWhichItCame) {
  const http::Request first = page_of(owner, "/"), second = page_of(owner, "/");
  const http::Request handed = page_of(by_ticket(of_page(first)), "/");
  gate.log_out(handed);
  EXPECT_TRUE(gate.identify(first, Door::api, false, now)) << "who was handed a ticket does not log its giver out";
  EXPECT_FALSE(gate.identify(handed, Door::api, false, now));
  gate.log_out(first);
  EXPECT_TRUE(gate.identify(second, Door::api, false, now));
}

TEST_F(LifeTest, APreviewOfALoginThatEndedIsNotContinued) {
  const http::Request page = page_of(owner, "/"), preview = page_of(of_page(page), "/proxy/5173");
  gate.log_out(page);
  const http::Request again = page_of(owner, "/");
  const std::string value = gate.open_login(preview, of_page(again), prefix("/proxy/5173"), "", now);
  EXPECT_FALSE(preview.headers[0].second.ends_with(value));
}

TEST_F(LifeTest, ManyGenerationsOfPagesAreNoLongerToCheck) {
  LifePtr life;
  for (int i = 0; i < 100'000; ++i) life = Life::below(life);
  EXPECT_FALSE(life->over());
  life->end();
  EXPECT_TRUE(Life::below(life)->over());
}

TEST_F(LifeTest, NamesThatNoCredentialHasAreForgotten) {
  WorkspaceLives lives;
  const LifePtr kept = lives.of("kept");
  for (int i = 0; i < 10'000; ++i) (void)lives.of(std::to_string(i));
  EXPECT_LT(lives.size(), 100U);
  lives.end("kept");
  EXPECT_TRUE(kept->over());
}

}  // namespace
}  // namespace caisson::auth
