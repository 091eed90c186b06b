// A listening socket that was handed over: accepts what comes, a few a turn.
#pragma once

#include <functional>

#include "launcher/egress/loop/poll.h"

namespace caisson::egress {

class Listener final : Poll::Source {
 public:
  Listener(Poll& poll, Fd fd, std::function<void(Fd)> accepted);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] Status begin();

 private:
  void ready(std::uint32_t events) override;

  Poll& poll_;
  Fd fd_;
  const std::function<void(Fd)> accepted_;
  Poll::Timer pause_;
};

}  // namespace caisson::egress
