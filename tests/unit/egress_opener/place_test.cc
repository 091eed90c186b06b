// What newer lists and secrets do to connections that are open.
#include "launcher/egress/opener/place.h"

#include "launcher/egress/opener/visit.h"
#include "tests/unit/egress_opener/peer.h"

namespace caisson::egress {
namespace {

class PlaceTest : public TlsTest {
 protected:
  void SetUp() override {
    TlsTest::SetUp();
    auto trust = Trust::load();
    if (!trust) GTEST_SKIP() << trust.error().text();
    trust_.emplace(std::move(*trust));
    auto [ours, theirs] = pair(SOCK_SEQPACKET);
    told_ = std::move(ours);
    launcher_.emplace(
        *poll_, std::move(theirs), [](const OrderHead&, std::string_view, const std::vector<Fd>&) { return true; }, [] {});
    place_.emplace(*poll_, *launcher_, *trust_, authority_, 1);
    place_->set_lists(lists("bash"), 1);
  }
  static Lists lists(const std::string& domain, std::uint32_t idle_seconds = 300) {
    List list;
    Rule rule;
    rule.name = "api.test", rule.why = "a test";
    list.rules.push_back(rule);
    list.bindings.push_back(
        {.name = "token", .placeholder = "a-placeholder-1234", .host = "api.test", .field = "authorization", .file = "/s"});
    list.limits.idle_seconds = idle_seconds;
    Lists out;
    out.of[domain] = std::make_shared<const List>(list);
    return out;
  }
  // A session's end of a new connection.
  Fd visit(const std::string& host) {
    auto [ours, client] = pair();
    auto [far, server] = pair();
    servers_.push_back(std::move(far));
    Visit::To to{.place = {*read_host(host), 443}, .host = host, .domain = "bash", .session = "", .ahead = ""};
    place_->add(std::make_unique<Visit>(*place_, std::move(to), std::move(client), std::move(server)));
    return std::move(ours);
  }
  std::optional<Trust> trust_;
  std::optional<LauncherLine> launcher_;
  Fd told_;
  std::vector<Fd> servers_;
  std::optional<Place> place_;
};

TEST_F(PlaceTest, ANewerListEndsWhatIsOpen) {
  const Fd one = visit("api.test");
  place_->set_lists(lists("bash"), 2);
  EXPECT_FALSE(at_end(one));  // it is the same
  place_->set_lists(lists("bash", 301), 3);
  EXPECT_TRUE(at_end(one));
  const Fd other = visit("api.test");
  place_->set_lists(lists("python"), 4);
  EXPECT_TRUE(at_end(other));
}

TEST_F(PlaceTest, ASecretThatIsGoneIsNotUsedAnyMore) {
  EXPECT_FALSE(place_->set_secret("bash", "token", "too short"));
  EXPECT_TRUE(place_->set_secret("bash", "token", "a-secret-of-a-test"));
  const Fd one = visit("api.test");
  EXPECT_TRUE(place_->set_secret("bash", "token", ""));
  EXPECT_TRUE(at_end(one));
  EXPECT_EQ(place_->bindings_of("bash")->all()[0].secret, "");
}

TEST_F(PlaceTest, RefusalsAreOnRecordAsFastAsUsesAndNoFaster) {
  while (place_->records.take(poll_->now_us())) {
  }
  const Fd one = visit("other.test");
  EXPECT_EQ(read_now(told_), "");
  std::string said;
  until([&] { return !(said = read_now(told_)).empty(); });
  EXPECT_TRUE(said.contains("not_listed")) << said;
}

}  // namespace
}  // namespace caisson::egress
