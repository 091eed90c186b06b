// Harness: an agent's session half against a FakeLauncher, and the means to run one coroutine of a test to its end.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "agent/routes/route.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"
#include "tests/unit/agent_services/fake_launcher.h"

namespace caisson::testing {

struct TempHome {
  TempHome() : path(std::filesystem::temp_directory_path() / ("caisson-test-" + sys::random_hex(6))) {
    std::filesystem::create_directories(path);
  }
  ~TempHome() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

class Harness {
 public:
  explicit Harness(services::Config config = {})
      : fake(home_.path.string()), client(io.get_executor(), fake.take_agent_end(), [this](Error e) { gone = std::move(e); }) {
    auto greeted = run(client.hello());
    EXPECT_TRUE(greeted) << greeted.error().text();
    workspace = std::make_unique<services::Workspace>(client, config);
    services.launcher = &client;
    services.workspace = workspace.get();
  }
  ~Harness() { fake.stop(); }

  // Runs the agent until `work` is over (a test that hangs fails after a minute).
  template <class T>
  Result<T> run(task<T> work) {
    auto result = std::make_shared<std::optional<Result<T>>>();
    asio::co_spawn(io, keep(std::move(work), result), rethrow);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    io.restart();
    while (!*result && std::chrono::steady_clock::now() < give_up) io.run_one_for(std::chrono::milliseconds(200));
    if (!*result) return fail(Code::timeout, "the test hangs");
    return std::move(**result);
  }
  // The agent's loop for a while, with nothing to wait for.
  void idle(std::chrono::milliseconds time) {
    io.restart();
    io.run_for(time);
  }
  // The agent's loop until that is so; what it was at the end, a minute later at most.
  template <class F>
  bool eventually(F fact) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!fact() && std::chrono::steady_clock::now() < give_up) idle(std::chrono::milliseconds(20));
    return fact();
  }
  // One request through the route table; the body of the answer.
  json::Value post(std::string_view path, json::Value body) { return call(http::Method::post, path, std::move(body)); }
  json::Value get(std::string_view path) { return call(http::Method::get, path, nullptr); }
  json::Value del(std::string_view path) { return call(http::Method::del, path, nullptr); }
  // The coroutine of a request, to run several at a time.
  task<http::Response> request(http::Method method, std::string path, json::Value body) {
    http::Request request;
    request.method = method;
    request.path = path;
    if (!body.is_null()) request.body = json::dump(body);
    const routes::Route* route = find(method, path, request.params);
    if (route == nullptr) co_return fail(Code::not_found, "no route " + path);
    routes::Call call{services, std::move(request), *route, nullptr};
    co_return co_await route->endpoint.handler(std::move(call));
  }
  int status = 0;  // of the last answer

 private:
  template <class T>
  static asio::awaitable<void> keep(task<T> work, std::shared_ptr<std::optional<Result<T>>> result) {
    Result<T> value = co_await std::move(work);
    result->emplace(std::move(value));
  }
  static void rethrow(std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
  }
  static const routes::Route* find(http::Method method, std::string_view path, http::Pairs& params) {
    for (const routes::Area area : {routes::bash_routes(), routes::shell_routes(), routes::file_routes(),
                                    routes::file_lookup_routes(), routes::file_editor_routes(), routes::file_watch_routes(),
                                    routes::code_routes(), routes::nodejs_routes(), routes::run_code_routes()})
      for (const routes::Route& route : area) {
        const std::size_t open = route.path.find('{');
        if (route.method != method) continue;
        if (route.path == path) return &route;
        if (open == std::string_view::npos || !path.starts_with(route.path.substr(0, open))) continue;
        const std::string_view tail = route.path.substr(route.path.find('}') + 1);
        if (!path.ends_with(tail) || path.size() <= open + tail.size()) continue;
        const std::string value(path.substr(open, path.size() - open - tail.size()));
        if (value.contains('/')) continue;
        params.emplace_back(route.path.substr(open + 1, route.path.find('}') - open - 1), value);
        return &route;
      }
    return nullptr;
  }
  json::Value call(http::Method method, std::string_view path, json::Value body) {
    auto response = run(request(method, std::string(path), std::move(body)));
    if (!response) return {{"success", false}, {"message", response.error().text()}, {"data", nullptr}};
    status = response->status;
    return *json::parse(http::text_of(*response), {.max_bytes = 64u << 20});
  }

  TempHome home_;

 public:
  asio::io_context io{1};
  FakeLauncher fake;
  std::optional<Error> gone;
  bridge::LauncherClient client;
  std::unique_ptr<services::Workspace> workspace;
  routes::Services services;
  [[nodiscard]] std::string home() const { return home_.path.string(); }
};

}  // namespace caisson::testing
