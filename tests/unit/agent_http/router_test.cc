#include "agent/routes/router.h"

#include <gtest/gtest.h>

namespace caisson::routes {
namespace {

using http::Method;

task<http::Response> nothing(Call) { co_return http::ok(nullptr); }
constexpr Route kRows[] = {
    {Method::get, "/s/{id}", "one", Scope::system, 0, Unknown::ignore, "", bind<nothing>()},
    {Method::get, "/s/stats", "stats", Scope::system, 0, Unknown::ignore, "", bind<nothing>()},
    {Method::del, "/s/{id}", "delete", Scope::system, 0, Unknown::ignore, "", bind<nothing>()},
    {Method::post, "/s/{id}/close", "close", Scope::system, 0, Unknown::ignore, "", bind<nothing>()},
    {Method::get, "/", "index", Scope::system, 0, Unknown::ignore, "", bind<nothing>()},
};

Match find(Method method, const std::vector<std::string>& segments) {
  std::vector<const Route*> table;
  for (const Route& row : kRows) table.push_back(&row);
  return Router(table).find(method, segments);
}
std::string id_of(const Match& match) { return match.route == nullptr ? "" : std::string(match.route->operation_id); }

TEST(Router, FixedSegmentsWinOverParameters) {
  EXPECT_EQ(id_of(find(Method::get, {"s", "stats"})), "stats");
  EXPECT_EQ(id_of(find(Method::get, {"s", "other"})), "one");
  EXPECT_EQ(id_of(find(Method::del, {"s", "stats"})), "delete");
}

TEST(Router, ParametersArriveDecoded) {
  const Match match = find(Method::post, {"s", "a/b", "close"});
  ASSERT_EQ(id_of(match), "close");
  EXPECT_EQ(match.params, (http::Pairs{{"id", "a/b"}}));
}

TEST(Router, EmptyParametersDoNotMatch) {
  EXPECT_EQ(id_of(find(Method::get, {"s", ""})), "");
  EXPECT_TRUE(find(Method::get, {"s", ""}).allowed.empty());
}

TEST(Router, HeadIsServedByGet) { EXPECT_EQ(id_of(find(Method::head, {})), "index"); }

TEST(Router, WrongMethodsNameTheRightOnes) {
  const Match match = find(Method::put, {"s", "stats"});
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(allow_header(match.allowed), "GET, HEAD, OPTIONS");
  EXPECT_EQ(allow_header(find(Method::put, {"s", "other"}).allowed), "DELETE, GET, HEAD, OPTIONS");
}

}  // namespace
}  // namespace caisson::routes
