// What the launcher's tables are constructed with, made up: no session is started, no user namespace asked for.
#pragma once

#include <memory>

#include "launcher/pid1/session/operations.h"
#include "tests/unit/audit/log_dir.h"
#include "tests/unit/confine/tiers.h"

namespace caisson::session {

struct Tables {
  explicit Tables(Tier tier = Tier::t0) {
    host.features = confine::tier_features(tier);
    host.log = std::make_unique<audit::Log>(audit::Log::create(dir.path(), "launcher").value());
    host.egress = std::make_unique<Egress>(*loop, host.features, host.settings, [this](audit::Event event, json::Value fields) {
      host.record(event, std::move(fields));
    });
  }
  // What is due now happens; nothing waits for more than 20 ms.
  void turn() {
    bool over = false;
    loop->after(20'000, [&over] { over = true; });
    ASSERT_TRUE(loop->run([&over] { return over; }));
  }
  [[nodiscard]] std::size_t records(const std::string& event) const {
    const std::string text = dir.read("launcher"), name = '"' + event + '"';
    std::size_t count = 0;
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) ++count;
    return count;
  }

  audit::LogDir dir;
  std::unique_ptr<Loop> loop = Loop::create({}).value();
  Host host{.settings = {.policy_dir = "/policies", .audit_dir = dir.path(), .home = dir.path()}, .loop = *loop};
};

}  // namespace caisson::session
