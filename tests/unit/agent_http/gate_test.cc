#include "agent/auth/secret.h"
#include "gate_fixture.h"

namespace caisson::auth {
namespace {

using std::chrono::seconds;

struct GateTest : OneKeyGate {
  Gate::Identified at(const http::Request& request, Door door = Door::api) { return gate.identify(request, door, false, now); }
  // A Cookie header with what Set-Cookie gave.
  http::Pairs cookie(const PathPrefix& path) {
    const std::string set = gate.logins.set_cookie(path, gate.logins.open({}, owner, path, "", now.steady), false);
    return {{"cookie", "a=b; " + set.substr(0, set.find(';')) + "; c=d"}};
  }
};

TEST_F(GateTest, TheCookieOfAPathOpensWhatIsBelowItAndNothingOfTheApi) {
  const http::Pairs cookies = cookie(prefix("/proxy/5173/"));
  EXPECT_TRUE(at(asking("/proxy/5173/a/b", cookies), Door::inside));
  EXPECT_TRUE(at(asking("/proxy/5173", cookies), Door::inside));
  EXPECT_TRUE(at(asking("/proxy/5173/save", cookies, http::Method::post), Door::inside)) << "an app in a preview has forms";
  for (const char* other : {"/proxy/5174/a", "/proxy/51733", "/proxy", "/", "/v1/sandbox"})
    EXPECT_FALSE(at(asking(other, cookies), Door::inside)) << other;
  EXPECT_FALSE(at(asking("/proxy/5173/a", cookies), Door::api));
  http::Pairs with_header = cookies;
  with_header.emplace_back("x-caisson-page", "anything");
  EXPECT_FALSE(at(asking("/v1/bash/exec", with_header), Door::api));
}

TEST_F(GateTest, TheCookieOfOurPagesOpensNoPreviewByItself) {
  const http::Pairs cookies = cookie({});
  EXPECT_FALSE(at(asking("/proxy/5173/", cookies), Door::inside)) << "its scripts have our origin";
  http::Pairs navigation = cookies;
  navigation.insert(navigation.end(), {{"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "document"}});
  EXPECT_FALSE(gate.by_login(asking("/proxy/5173/", navigation), now)) << "a page of a preview follows links, too";
  navigation.emplace_back("sec-fetch-site", "none");
  EXPECT_TRUE(gate.by_login(asking("/proxy/5173/", navigation), now)) << "a typed address is exchanged for a cookie of its own";
  EXPECT_FALSE(gate.by_login(asking("/proxy/5173/", cookies), now));
}

TEST_F(GateTest, BehindAPageTheProgramsOwnHeadersAreNotOurs) {
  http::Pairs headers = cookie(prefix("/proxy/5173"));
  headers.emplace_back("authorization", "Bearer the-apps-own");
  EXPECT_TRUE(at(asking("/proxy/5173/x?ticket=the-apps-own", headers), Door::inside));
  EXPECT_FALSE(at(asking("/v1/sandbox", {{"authorization", "Bearer the-apps-own"}})));
}

TEST_F(GateTest, ALoginEndsWhenIdleAndAfterItsLongestTime) {
  const http::Pairs cookies = cookie(prefix("/p"));
  const auto began = now.steady;
  for (now.steady = began; now.steady < began + Logins::kLongest; now.steady += seconds(3600))
    EXPECT_TRUE(at(asking("/p/x", cookies), Door::inside));
  now.steady = began + Logins::kLongest + seconds(1);
  EXPECT_FALSE(at(asking("/p/x", cookies), Door::inside));
  const http::Pairs idle = cookie(prefix("/p"));
  now.steady += Logins::kIdle + seconds(1);
  EXPECT_FALSE(at(asking("/p/x", idle), Door::inside));
}

TEST_F(GateTest, LoginsAndTicketsAreBounded) {
  for (std::size_t i = 0; i < Tickets::kMaxTickets + 10; ++i) (void)gate.tickets.issue(owner, false, now.steady);
  EXPECT_EQ(gate.tickets.size(), Tickets::kShare) << "of one credential";
  const http::Pairs first = cookie(prefix("/p"));
  now.steady += seconds(1);
  for (std::size_t i = 0; i < Logins::kMaxLogins; ++i) (void)cookie(prefix("/p"));
  EXPECT_FALSE(at(asking("/p/x", first), Door::inside)) << "the least recently used one ends";
  EXPECT_TRUE(at(asking("/p/x", cookie(prefix("/p"))), Door::inside));
}

TEST_F(GateTest, AForgedCookieIsNone) {
  const http::Pairs good = cookie(prefix("/p"));
  std::string value = good[0].second;
  for (const std::size_t at_byte : {value.find('=', 5) + 2, value.find("; c=") - 1}) {
    std::string forged = value;
    forged[at_byte] = forged[at_byte] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(at(asking("/p/x", {{"cookie", forged}}), Door::inside)) << at_byte;
  }
  EXPECT_TRUE(at(asking("/p/x", {{"cookie", value}}), Door::inside));
}

TEST_F(GateTest, ATicketOpensPagesOftenAndIsUsedUpByAnythingElse) {
  const std::string ticket = gate.tickets.issue(owner, false, now.steady);
  const std::string address = "/vnc/index.html?ticket=" + ticket;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(at(asking(address), Door::inside));
  EXPECT_TRUE(at(asking(address, {}, http::Method::post), Door::inside));
  EXPECT_FALSE(at(asking(address), Door::inside));
}

// A ticket, used once, logs a page in; the page asks for the next ticket; and so on.
TEST_F(GateTest, TheTicketsOfAChainHaveOneEnd) {
  Principal holder = owner;
  for (int generation = 0; generation < 4; ++generation) {
    const std::string ticket = gate.issue_ticket(holder, true, now);
    const auto found = at(asking("/?ticket=" + ticket), Door::page);
    ASSERT_TRUE(found) << generation;
    EXPECT_FALSE(at(asking("/?ticket=" + ticket), Door::page)) << "it is used up";
    EXPECT_TRUE(found->handed_on);
    holder = *found;
    now.seconds += std::chrono::seconds(Logins::kLongest).count() / 4;
    now.steady += Logins::kLongest / 4;
  }
  EXPECT_FALSE(at(asking("/?ticket=" + gate.issue_ticket(holder, true, now)), Door::page)) << "the first one's end";
  EXPECT_FALSE(gate.is_rooted(holder, now)) << "what is open by it ends, too";
}

TEST_F(GateTest, ATicketHasAnEnd) {
  const std::string ticket = gate.tickets.issue(owner, false, now.steady);
  now.steady += seconds(30);
  EXPECT_FALSE(at(asking("/p?ticket=" + ticket), Door::inside));
}

TEST_F(GateTest, WhatIsDerivedEndsWithItsOrigin) {
  Principal ended = owner;
  ended.ends = now.seconds;
  EXPECT_FALSE(at(asking("/p?ticket=" + gate.tickets.issue(ended, false, now.steady)), Door::inside));
  Principal rootless = owner;
  rootless.root = "key:" + std::string(32, 'x');
  EXPECT_FALSE(at(asking("/p?ticket=" + gate.tickets.issue(rootless, false, now.steady)), Door::inside));
}

TEST_F(GateTest, AMintedTokenIsGivenAgainByItsLabelAndBoundsAndEndsWithItsMinter) {
  Bounds bounds;
  bounds.workspace = "w1";
  const auto first = gate.minted.mint(owner, "ci", bounds, now.seconds + 60, now.seconds);
  ASSERT_TRUE(first);
  const std::string secret = gate.minted.secret_of(**first);
  const auto again = gate.minted.mint(owner, "ci", bounds, now.seconds + 30, now.seconds);
  ASSERT_TRUE(again);
  EXPECT_EQ(gate.minted.secret_of(**again), secret);
  EXPECT_FALSE(gate.minted.mint(owner, "ci", {}, now.seconds + 60, now.seconds)) << "other bounds";
  const auto principal = gate.by_secret("192.0.2.1", secret, now);
  ASSERT_TRUE(principal);
  EXPECT_EQ(principal->bounds.workspace, "w1");
  const std::string ticket = gate.tickets.issue(*principal, false, now.steady);
  EXPECT_TRUE(at(asking("/p?ticket=" + ticket), Door::inside));
  EXPECT_TRUE(gate.minted.revoke(owner, (*first)->id, now.seconds));
  EXPECT_FALSE(gate.by_secret("192.0.2.1", secret, now));
  EXPECT_FALSE(at(asking("/p?ticket=" + ticket), Door::inside)) << "what came of it ends with it";
  const auto anew = gate.minted.mint(owner, "ci", bounds, now.seconds + 60, now.seconds);
  EXPECT_NE(gate.minted.secret_of(**anew), secret) << "a revoked token does not come back";
}

TEST_F(GateTest, AMintedTokenHasAnEndAndIsNotForged) {
  const auto token = gate.minted.mint(owner, "x", {}, now.seconds + 60, now.seconds);
  std::string secret = gate.minted.secret_of(**token);
  now.seconds += 60;
  EXPECT_FALSE(gate.by_secret("192.0.2.1", secret, now));
  now.seconds -= 60;
  EXPECT_TRUE(gate.by_secret("192.0.2.1", secret, now));
  secret.back() = secret.back() == 'A' ? 'E' : 'A';
  EXPECT_FALSE(gate.by_secret("192.0.2.1", secret, now));
}

TEST_F(GateTest, AfterManyWrongOnesOnlyKnownCredentialsOfAnAddressAreLookedAt) {
  Gate other{{.api_key = "secret"}, {}};
  for (int i = 0; i < Failures::kMaxGuesses; ++i) (void)other.failures.record("192.0.2.9", now.steady);
  EXPECT_EQ(other.by_secret("192.0.2.9", "secret", now).error(), Gate::Refusal::limited);
  EXPECT_TRUE(other.by_secret("192.0.2.1", "secret", now)) << "another address";
  EXPECT_TRUE(other.by_secret("192.0.2.9", "secret", now)) << "it is known to be right now";
  EXPECT_EQ(other.by_secret("192.0.2.9", "guess", now).error(), Gate::Refusal::limited);
  now.steady += seconds(61);
  EXPECT_EQ(other.by_secret("192.0.2.9", "guess", now).error(), Gate::Refusal::wrong);
}

TEST_F(GateTest, AfterManyWrongOnesAKeyThatNobodyGuessesIsStillTaken) {
  const std::string key(20, 'k');
  Gate other{{.api_key = key}, {}};
  const auto minted = other.mint(*other.by_secret("192.0.2.1", key, now), "t", {}, now.seconds + 60, now);
  Gate fresh{{.api_key = key}, {}};
  for (Gate* gate : {&other, &fresh})
    for (int i = 0; i < Failures::kMaxGuesses; ++i) (void)gate->failures.record("192.0.2.9", now.steady);
  EXPECT_TRUE(fresh.by_secret("192.0.2.9", key, now)) << "it was not used before";
  EXPECT_TRUE(other.by_secret("192.0.2.9", other.minted.secret_of(**minted), now));
  EXPECT_EQ(fresh.by_secret("192.0.2.9", std::string(20, 'x'), now).error(), Gate::Refusal::limited);
}

TEST_F(GateTest, WrongKeysThatOtherSitesMakeBrowsersSendLockOutTheseAlone) {
  Gate other{{.api_key = "secret"}, {}};
  const auto ask = [&](const char* key, http::Pairs headers) {
    http::Request request = asking(std::string("/?api_key=") + key, std::move(headers));
    request.remote = "192.0.2.9";
    const auto found = other.identify(request, Door::api, false, now);
    if (!found) (void)other.failures.record(sender_of(request), now.steady);
    return found;
  };
  for (const char* site : {"cross-site", "same-site"})
    for (int i = 0; i < Failures::kMaxGuesses; ++i) EXPECT_FALSE(ask("x", {{"sec-fetch-site", site}}));
  EXPECT_EQ(ask("secret", {{"sec-fetch-site", "cross-site"}}).error(), Gate::Refusal::limited) << "the header is no way around";
  EXPECT_EQ(ask("x", {}).error(), Gate::Refusal::wrong);
  EXPECT_TRUE(ask("secret", {}));
}

TEST(Failures, ALockOutIsNotProlongedByRequestsWithoutACredential) {
  Failures failures;
  auto now = Failures::Clock::now();
  for (int i = 0; i < Failures::kMaxGuesses; ++i) (void)failures.record("192.0.2.9", now);
  for (int i = 0; i < 6; ++i) (void)failures.record("192.0.2.9", now += seconds(10), false);
  EXPECT_TRUE(failures.is_blocked("192.0.2.9", now));
  now += seconds(1);
  EXPECT_FALSE(failures.is_blocked("192.0.2.9", now));
  (void)failures.record("192.0.2.9", now);
  EXPECT_FALSE(failures.is_blocked("192.0.2.9", now)) << "the guesses of before are forgotten";
}

TEST(Failures, RequestsWithoutACredentialAreNoGuesses) {
  Failures failures;
  const auto now = Failures::Clock::now();
  for (int i = 0; i < 2 * Failures::kMaxGuesses; ++i) (void)failures.record("192.0.2.9", now, false);
  EXPECT_FALSE(failures.is_blocked("192.0.2.9", now));
}

TEST(Cookies, WhereItCanAPageGetsOneThatNoNeighbourSets) {
  const Logins logins;
  const auto set = [&](const char* path, bool secure) { return logins.set_cookie(*PathPrefix::parse(path), "v", secure); };
  EXPECT_TRUE(set("/", true).starts_with("__Host-caisson_page_"));
  EXPECT_TRUE(set("/", true).contains("; Path=/;") && set("/", true).contains("; Secure") && !set("/", true).contains("Domain"));
  EXPECT_TRUE(set("/", false).starts_with("caisson_page_"));
  EXPECT_TRUE(set("/proxy/5173", true).starts_with("caisson_page_")) << "browsers would refuse it";
}

TEST(Cookies, OnASecureConnectionOnlySuchAOneIsALogin) {
  const auto now = std::chrono::steady_clock::now();
  Logins logins;
  const std::string value = logins.open({}, {.root = "key:a"}, {}, "", now), token = logins.token_of(value);
  for (const bool prefixed : {false, true}) {
    const std::string set = logins.set_cookie({}, value, prefixed);
    http::Request request = asking("/", {{"cookie", "a=b; " + set.substr(0, set.find(';'))}});
    EXPECT_NE(logins.find(request, true, now), nullptr) << "a proxy that is not trusted may have the secure connection";
    request.scheme = "https";
    EXPECT_EQ(logins.find(request, true, now) != nullptr, prefixed);
    EXPECT_EQ(logins.of_page(request, token, now) != nullptr, prefixed);
    EXPECT_EQ(!logins.page_token(request, now).empty(), prefixed);
  }
}

TEST(Cookies, TheCookieOfAPreviewBelowAPathNeedsNoPrefix) {
  const auto now = std::chrono::steady_clock::now();
  Logins logins;
  const PathPrefix path = *PathPrefix::parse("/proxy/5173");
  const std::string set = logins.set_cookie(path, logins.open({}, {.root = "key:a"}, path, "", now), true);
  http::Request request = asking("/proxy/5173/x", {{"cookie", set.substr(0, set.find(';'))}});
  request.scheme = "https";
  EXPECT_NE(logins.find(request, false, now), nullptr);
}

TEST(Cookies, OursAreNotPassedOn) {
  EXPECT_EQ(without_our_cookies("a=1; caisson_page_AbC=x;caisson_page=y;  b=2 "), "a=1; b=2");
  EXPECT_EQ(without_our_cookies("caisson_page_x=1"), "");
  EXPECT_EQ(without_our_cookies("__Host-caisson_page_x=1; __Host-app=2"), "__Host-app=2");
}

TEST(Scopes, AreasAndTheirAccess) {
  const auto scopes = Scopes::parse(std::vector<std::string>{"file:read", "bash"}, kAreas);
  ASSERT_TRUE(scopes);
  EXPECT_TRUE(scopes->permits("file", Access::read));
  EXPECT_FALSE(scopes->permits("file", Access::all));
  EXPECT_TRUE(scopes->permits("bash", Access::all));
  EXPECT_FALSE(scopes->permits("audit", Access::read));
  EXPECT_FALSE(scopes->permits("*", Access::read));
  EXPECT_TRUE(scopes->within(Scopes::everything()));
  EXPECT_FALSE(Scopes::everything().within(*scopes));
  for (const char* wrong : {"", "files", "file:", "file:write", ":read", "File", "*x"})
    EXPECT_FALSE(Scopes::parse(std::vector<std::string>{wrong}, kAreas)) << wrong;
}

TEST(Scopes, AClaimOfAnotherSystemGrantsNothing) {
  EXPECT_EQ(Scopes::of_claim("openid profile", kAreas).names(), std::vector<std::string>{});
  EXPECT_EQ(Scopes::of_claim("openid file:read  bash", kAreas).names(), (std::vector<std::string>{"bash", "file:read"}));
}

TEST(Bounds, NothingDerivedIsWider) {
  const Bounds all;
  Bounds narrow;
  narrow.workspace = "w";
  narrow.port = 80;
  narrow.path = *PathPrefix::parse("/a");
  EXPECT_TRUE(narrow.within(all));
  EXPECT_FALSE(all.within(narrow));
  Bounds below = narrow;
  below.path = *PathPrefix::parse("/a/b");
  EXPECT_TRUE(below.within(narrow));
  below.path = *PathPrefix::parse("/ab");
  EXPECT_FALSE(below.within(narrow));
}

TEST(Bounds, WhoWatchesOneTerminalHandsOnNoOther) {
  Bounds one;
  one.terminal = "s1";
  Bounds other = one;
  other.terminal = "s2";
  EXPECT_TRUE(one.within(Bounds()));
  EXPECT_FALSE(Bounds().within(one));
  EXPECT_FALSE(other.within(one));
}

TEST(PathPrefix, HoldsNothingThatAProgramMayDecodeToAnotherFolder) {
  const PathPrefix path = *PathPrefix::parse("/proxy/1/public");
  for (const char* one : {"../secret", "a/b", "..\\secret", "a\\b", "..;", "..;a", "..", "...", "../"})
    EXPECT_FALSE(path.holds({"proxy", "1", "public", one})) << one;
  EXPECT_FALSE(path.holds({"proxy", "1", "public", std::string("a\0b", 3)}));
  for (const char* one : {"a", ".hidden", "a..b", "a;b", ""}) EXPECT_TRUE(path.holds({"proxy", "1", "public", one})) << one;
  EXPECT_TRUE(PathPrefix().holds({"../secret"})) << "a credential for every path has nothing to leave";
}

TEST(PathPrefix, IsReadByTheDecoderOfRequests) {
  for (const char* wrong : {"", "a", "//", "/a/../b", "/a/%2e%2e", "/a?b", "/a#b", "/a;b", "/%00", "/a b\n"})
    EXPECT_FALSE(PathPrefix::parse(wrong)) << wrong;
  EXPECT_TRUE(PathPrefix::parse("/%61/")->holds({"a", "x"}));
}

TEST(ApiKeys, TheFileIsTakenWholeOrNotAtAll) {
  ApiKeys keys("operator", {std::begin(kAreas), std::end(kAreas)});
  const std::string good = R"([{"name":"a","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}])";
  ASSERT_TRUE(keys.load(good));
  EXPECT_NE(keys.by_digest(sha256("test"), 5), nullptr);
  for (const std::string& wrong :
       {std::string("{}"), std::string("[1]"), std::string("[{\"name\":\"a\"}]"), good + "x",
        R"([{"name":"a","sha256":"9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08"}])" + std::string(),
        R"([{"name":"a","name":"a","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}])" +
            std::string(),
        R"([{"name":"SANDBOX_API_KEY","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}])" +
            std::string(),
        R"([{"name":"a","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","scopes":["x"]}])" +
            std::string(),
        R"([{"name":"a","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","not_after":0}])" +
            std::string(),
        R"([{"name":"a","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","scope":"*"}])" +
            std::string()})
    EXPECT_FALSE(keys.load(wrong)) << wrong;
  EXPECT_NE(keys.by_digest(sha256("test"), 5), nullptr);
  ASSERT_TRUE(keys.load("[]"));
  EXPECT_EQ(keys.by_digest(sha256("test"), 5), nullptr);
  EXPECT_NE(keys.by_digest(sha256("operator"), 5), nullptr);
}

TEST(Base64Url, HasOneSpellingForEachText) {
  EXPECT_EQ(base64url_encode("\xfb\xff"), "-_8");
  EXPECT_EQ(base64url_decode("-_8"), "\xfb\xff");
  for (const char* wrong : {"-_9", "-_8=", "+/8", "-_ 8", "A", "AAAAA", "-_8\n"})
    EXPECT_EQ(base64url_decode(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace caisson::auth
