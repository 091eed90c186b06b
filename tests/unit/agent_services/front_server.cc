// front_server PORT KEY: the agent's server, admission and routes as one program that needs no root, with a double of the
// launcher, whose sessions are not confined: for tests on 127.0.0.1 only. tests/api/test_front_door_hostile.py runs it built with
// ASan and UBSan, which do not fit into the agent's limits of memory and calls.
#include <cstdio>
#include <cstdlib>

#include "agent/routes/app.h"
#include "agent/routes/sandbox_info.h"
#include "agent/routes/status.h"
#include "agent/routes/table.h"
#include "tests/unit/agent_services/harness.h"

int main(int argc, char** argv) {
  using namespace caisson;
  if (argc != 3) return 64;
  caisson::testing::Harness harness;
  routes::AgentStatus status;
  status.launcher = {"launcher", true};
  status.sessions = {"sessions", true};
  const auto port = static_cast<unsigned short>(std::atoi(argv[1]));
  routes::SandboxInfo sandbox({.user = "gem", .workspace = harness.home(), .timezone = "UTC", .port = port});
  sandbox.set_places(harness.home(), harness.home());
  harness.services.status = &status;
  harness.services.sandbox = &sandbox;
  routes::App app(harness.services, {.auth = {.api_key = argv[2]}}, routes::all_routes());
  http::Server server(harness.io, app, {}, {.proxies = {}, .access_log_fd = STDERR_FILENO});
  if (const auto listening = server.listen("127.0.0.1", port); !listening) {
    std::fprintf(stderr, "%s\n", listening.error().text().c_str());
    return 1;
  }
  server.start();
  harness.io.restart();
  harness.io.run();
}
