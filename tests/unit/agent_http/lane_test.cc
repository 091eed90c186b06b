#include "agent/http/lane.h"

#include <random>

#include <gtest/gtest.h>
#include <boost/asio/post.hpp>

#include "agent/http/json_text.h"
#include "agent/http/response.h"

namespace caisson {
namespace {

using http::Budget;
using http::Lane;

struct Workers {
  asio::io_context io{1};
  std::shared_ptr<Lane> lane = std::make_shared<Lane>(io.get_executor());
  std::shared_ptr<Budget> budget = std::make_shared<Budget>(1000);
  std::string order;
  int busy = 0, most = 0;
};

task<void> work(Workers* all, char name, Budget::PayerPtr client, Budget::PayerPtr workspace) {
  const Lane::Turn turn = co_await Lane::take(all->lane, std::move(client), std::move(workspace));
  all->most = std::max(all->most, ++all->busy);
  all->order += name;
  for (int i = 0; i < 3; ++i) co_await http::pause();
  --all->busy;
  co_return Status{};
}

TEST(Flaw15Lane, OneAtATimeAndWhoWaitedLongestByClientThenByWorkspace) {
  Workers all;
  const auto hostile = all.budget->open(1), quiet = all.budget->open(1), w = all.budget->open(1), v = all.budget->open(1);
  for (int i = 0; i < 4; ++i) spawn(all.io.get_executor(), "hostile", work(&all, 'h', hostile, w));
  spawn(all.io.get_executor(), "other workspace", work(&all, 'v', hostile, v));
  spawn(all.io.get_executor(), "quiet", work(&all, 'q', quiet, w));
  all.io.run();
  EXPECT_EQ(all.order, "hqvhhh");
  EXPECT_EQ(all.most, 1);
}

task<void> hold_for_ever(Workers* all, Budget::PayerPtr payer) {
  const Lane::Turn turn = co_await Lane::take(all->lane, payer, payer);
  co_await sleep_for(std::chrono::hours(1));
  co_return Status{};
}

task<void> give_up_soon(Workers* all, Budget::PayerPtr payer) {
  task<void> waits = hold_for_ever(all, std::move(payer));
  (void)co_await with_timeout(std::move(waits), std::chrono::milliseconds(20), "a turn");
  co_return Status{};
}

TEST(Flaw15Lane, WhoIsCancelledHoldsNothing) {
  Workers all;
  const auto one = all.budget->open(1), two = all.budget->open(1);
  spawn(all.io.get_executor(), "holds", give_up_soon(&all, one));
  spawn(all.io.get_executor(), "waits", give_up_soon(&all, one));
  spawn(all.io.get_executor(), "comes last", work(&all, 'x', two, two));
  all.io.run_for(std::chrono::seconds(20));
  EXPECT_EQ(all.order, "x");
}

json::Value random_value(std::mt19937& random, int depth) {
  const auto pick = [&](unsigned most) { return std::uniform_int_distribution<unsigned>(0, most)(random); };
  const auto text = [&](unsigned most) {
    static constexpr std::string_view kParts[] = {"a",  "\xc3\xa9", "\xf0\x9f\x98\x80", "\x80", "\xf0\x9f", "\"", "\\",
                                                  "\n", "\x01"};
    std::string out;
    for (unsigned i = pick(most); i > 0; --i) out += kParts[pick(8)];
    return out;
  };
  switch (pick(depth > 0 ? 6 : 4)) {
    case 0:
      return nullptr;
    case 1:
      return pick(1) == 1;
    case 2:
      return pick(1000) - 500.5;
    case 3:
      return text(20);
    case 4:
      return text(60'000);
    case 5: {
      json::Value list = json::Value::array();
      for (unsigned i = pick(5); i > 0; --i) list.push_back(random_value(random, depth - 1));
      return list;
    }
    default: {
      json::Value object = json::Value::object();
      for (unsigned i = pick(5); i > 0; --i) object[text(5)] = random_value(random, depth - 1);
      return object;
    }
  }
}

task<void> flood(std::string* order, char name, int parts) {
  for (int i = 0; i < parts; ++i) {
    *order += name;
    co_await http::pause();
  }
  co_return Status{};
}

task<void> small_request(std::string* order, int hops) {
  for (int i = 0; i < hops; ++i) {
    *order += '.';
    co_await asio::post(asio::use_awaitable);
  }
  co_return Status{};
}

TEST(Flaw09Pause, BetweenTwoPartsEverybodyElseIsServedHoweverManyFloodsThereAre) {
  asio::io_context io{1};
  std::string order;
  for (const char name : {'a', 'b', 'c'}) spawn(io.get_executor(), "flood", flood(&order, name, 3));
  spawn(io.get_executor(), "request", small_request(&order, 5));
  http::run(io);
  EXPECT_EQ(order, "abc.....abcabc");
}

TEST(Flaw09Pause, WhereOthersNeverRestThePartsStillHaveTheirTurn) {
  asio::io_context io{1};
  std::string order;
  spawn(io.get_executor(), "flood", flood(&order, 'a', 3));
  spawn(io.get_executor(), "request", small_request(&order, 1000));
  http::run(io);
  EXPECT_LT(order.rfind('a'), 300U);
}

// Invalid UTF-8 is in it, and sequences that a part could cut.
TEST(Flaw15JsonText, PartsAreTheBytesOfTheWhole) {
  std::mt19937 random(15);
  for (int i = 0; i < 60; ++i) {
    const json::Value value = random_value(random, 3);
    http::JsonText parts(value);
    std::string text;
    std::size_t before = 0, most = 0;
    for (bool more = true; more;) {
      more = parts.append_to(text);
      most = std::max(most, text.size() - std::exchange(before, text.size()));
    }
    ASSERT_EQ(text, json::dump(value));
    EXPECT_LE(most, 8 * http::kAtOnce) << "a part is bounded, whatever the value";
  }
}

TEST(Flaw15JsonText, OfWhatIsLargeNoTextIsMadeAtOnce) {
  const http::Response small = http::ok("x"), large = http::ok(std::string(100'000, 'x'));
  EXPECT_FALSE(small.values);
  ASSERT_TRUE(large.values && large.body.empty());
  EXPECT_TRUE(http::text_of(large).contains(std::string(100'000, 'x')));
}

}  // namespace
}  // namespace caisson
