#include "agent/services/common/roster.h"

namespace caisson::services {

void Roster::look_after(const char* what, When when, Look look) {
  spawn(executor_, what, run(life_, std::move(when), std::move(look)));
}

task<void> Roster::run(std::shared_ptr<Life> life, When when, Look look) {
  while (!life->over) {
    (void)co_await life->changed.wait_until(when());
    if (life->over) break;
    (void)co_await look(life);
  }
  co_return Status{};
}

Roster::When every(std::chrono::milliseconds pause) {
  return [pause] { return bridge::Clock::now() + pause; };
}

}  // namespace caisson::services
