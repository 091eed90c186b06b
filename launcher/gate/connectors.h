// The way out of a workspace whose sessions have no network namespace: a listener on the container's own loopback for the door,
// and the builder's socket, over which each session's connector comes. They outlive a door: the next one gets them all.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "launcher/common/base/loop.h"

namespace caisson::gate {

class Connectors {
 public:
  struct One {
    std::string whose;  // "session domain"
    Fd line;            // the door's end
  };
  using Come = std::function<void(const One& one)>;
  // builder: its socket (egress/connector.h). `come` is called from the loop for each new one.
  Connectors(Loop& loop, Fd builder, Come come) : loop_(loop), builder_(std::move(builder)), come_(std::move(come)) {}
  ~Connectors();
  Connectors(const Connectors&) = delete;
  [[nodiscard]] Status listen();

  [[nodiscard]] int listener() const { return listener_.get(); }
  [[nodiscard]] int builder() const { return builder_.get(); }
  [[nodiscard]] const std::list<One>& all() const { return all_; }

 private:
  void hear();

  Loop& loop_;
  const Fd builder_;
  const Come come_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::list<One> all_;  // whose other end is still there
};

}  // namespace caisson::gate
