// The order of the checks of a request's head: a request that is wrong in every way is mended step by step, and each time the
// next check refuses it. The order is a promise: without a key nobody learns which paths and workspaces exist.
#include "agent/routes/app.h"
#include "agent/services/workspace/workspaces.h"
#include "tests/unit/agent_services/harness.h"

namespace caisson::testing {
namespace {

task<http::Response> nothing(routes::Call) { co_return http::ok(nullptr); }
constexpr routes::Route kRows[] = {
    {http::Method::get, "/here", "here", routes::Scope::bash, 0, routes::Unknown::ignore, "", routes::bind<nothing>()},
    {http::Method::get, "/open", "open", routes::Scope::system, routes::kPublic, routes::Unknown::ignore, "",
     routes::bind<nothing>()},
};

class Admission : public ::testing::Test {
 protected:
  Admission() : workspaces(h.client, {}) {
    h.services.workspaces = &workspaces;
    head.method = http::Method::get;
    head.remote = "192.0.2.1";
  }
  void path(std::string name) {
    head.path = "/" + name;
    head.segments = {std::move(name)};
  }
  static task<http::Admission> admit(routes::App& app, http::Request head) {
    http::Admission admission = co_await app.admit(std::move(head));
    co_return admission;
  }
  // The status of the refusal; 0: the request is let in.
  int refusal(const routes::AppSettings& settings) {
    std::vector<const routes::Route*> table;
    for (const routes::Route& row : kRows) table.push_back(&row);
    routes::App app(h.services, settings, table);
    auto admission = h.run(admit(app, head));
    if (!admission) return -1;
    const auto* response = std::get_if<http::Response>(&*admission);
    text = response == nullptr ? "" : response->body;
    return response == nullptr ? 0 : response->status;
  }
  void set(std::string name, std::string value) { head.headers.emplace_back(std::move(name), std::move(value)); }
  void unset(std::string_view name) {
    std::erase_if(head.headers, [&](const auto& header) { return header.first == name; });
  }

  Harness h;
  services::Workspaces workspaces;
  http::Request head;
  std::string text;
};

TEST_F(Admission, ARequestThatIsWrongInEveryWayMeetsTheChecksInTheirOrder) {
  const routes::AppSettings settings{.auth = {.api_key = "secret"}};
  path("nowhere");
  set("host", "localhost");
  set("origin", "https://evil.example");
  set("x-caisson-workspace", "one");
  set("x-caisson-workspace", "two");
  EXPECT_EQ(refusal(settings), 403);
  EXPECT_TRUE(text.contains("Origin")) << text;
  unset("origin");
  EXPECT_EQ(refusal(settings), 401);
  set("x-aio-api-key", "secret");
  EXPECT_EQ(refusal(settings), 404);
  EXPECT_TRUE(text.contains("Not Found")) << text;
  path("here");
  head.method = http::Method::post;
  EXPECT_EQ(refusal(settings), 405);
  head.method = http::Method::get;
  EXPECT_EQ(refusal(settings), 400);
  EXPECT_TRUE(text.contains("X-Caisson-Workspace")) << text;
  unset("x-caisson-workspace");
  EXPECT_EQ(refusal(settings), 0) << text;
}

TEST_F(Admission, WithoutAuthenticationTheHostComesBeforeTheOrigin) {
  const routes::AppSettings settings{.auth = {.off = true}};
  path("here");
  set("host", "rebound.example");
  set("origin", "https://evil.example");
  EXPECT_EQ(refusal(settings), 403);
  EXPECT_TRUE(text.contains("Host")) << text;
  unset("host");
  set("host", "localhost");
  EXPECT_EQ(refusal(settings), 403);
  EXPECT_TRUE(text.contains("Origin")) << text;
  unset("origin");
  EXPECT_EQ(refusal(settings), 0) << text;
}

TEST_F(Admission, APublicPathNeedsNoKeyAndHasNoWorkspace) {
  path("open");
  set("host", "localhost");
  set("x-caisson-workspace", "one");
  set("x-caisson-workspace", "two");
  EXPECT_EQ(refusal({.auth = {.api_key = "secret"}}), 0) << text;
}

TEST_F(Admission, APreflightIsAnsweredBeforeTheKeyIsAskedFor) {
  path("nowhere");
  head.method = http::Method::options;
  set("host", "localhost");
  set("origin", "http://localhost");
  EXPECT_EQ(refusal({.auth = {.api_key = "secret"}}), 204) << text;
}

}  // namespace
}  // namespace caisson::testing
