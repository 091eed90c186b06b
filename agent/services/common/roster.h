// Roster: the periodic duties of a service, for as long as it lives: ending idle sessions and programs that are too old.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "agent/bridge/launcher_types.h"

namespace caisson::services {

// Ends a service's background coroutines before the service ends: they hold this, not the service.
struct Life {
  explicit Life(asio::any_io_executor executor) : changed(std::move(executor)) {}
  bool over = false;
  bridge::Notifier changed;
};

class Roster {
 public:
  // The time of the next look; called again after each look and each wake().
  using When = std::function<bridge::Clock::time_point()>;
  // Ends what is due. After each wait it checks `life` first: the service may be gone.
  using Look = std::function<task<void>(std::shared_ptr<const Life>)>;

  explicit Roster(asio::any_io_executor executor) : executor_(executor), life_(std::make_shared<Life>(std::move(executor))) {}
  ~Roster() { stop(); }
  Roster(const Roster&) = delete;
  Roster& operator=(const Roster&) = delete;

  // Each row has a coroutine of its own, so a slow end delays no other row. what: for the agent's log.
  void look_after(const char* what, When when, Look look);
  // Asks When again, because the next time may be earlier now.
  void wake() { life_->changed.notify_all(); }
  // No look begins after this.
  void stop() {
    life_->over = true;
    life_->changed.notify_all();
  }
  [[nodiscard]] const std::shared_ptr<Life>& life() const { return life_; }

 private:
  static task<void> run(std::shared_ptr<Life> life, When when, Look look);

  asio::any_io_executor executor_;
  std::shared_ptr<Life> life_;
};

// How often services look for idle objects.
inline constexpr std::chrono::seconds kExpiryPause{15};
// A When with a fixed pause.
[[nodiscard]] Roster::When every(std::chrono::milliseconds pause);

// Closes them one after the other; a session that is used again meanwhile is left alone. Failures are in the launcher's log, and
// a session that failed to end has left its table all the same.
template <class Service, class Session>
[[nodiscard]] task<void> close_idle(Service* self, std::shared_ptr<const Life> life, std::vector<std::shared_ptr<Session>> idle) {
  for (const std::shared_ptr<Session>& session : idle) {
    if (life->over) break;
    if (!session->busy()) (void)co_await self->close(session, "idle");
  }
  co_return Status{};
}

}  // namespace caisson::services
