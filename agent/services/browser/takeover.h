// Takeover: a person has the browser of a workspace. Shared: beside its programs' clients. Exclusive: alone, and what would show
// these clients what the person types is kept back until the end. It ends by itself.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/bridge/notifier.h"

namespace caisson::services {

class Takeover {
 public:
  struct State {
    bool exclusive = false;
    bool view_only = false;  // what the address that was handed out permits
    std::int64_t until = 0;  // seconds since 1970
  };

  explicit Takeover(const asio::any_io_executor& executor) : changed_(executor) {}

  // Instead of the one before. seconds > 0.
  State begin(bool exclusive, bool view_only, std::int64_t seconds);
  void end();
  [[nodiscard]] std::optional<State> current() const;
  [[nodiscard]] bool is_exclusive() const;
  // Returns when no person has the browser alone.
  [[nodiscard]] asio::awaitable<void> await_end();

 private:
  std::optional<State> state_;
  bridge::Clock::time_point ends_;
  bridge::Notifier changed_;
};

}  // namespace caisson::services
