// Pipes for splice(2), kept for the next connection that moves much: making one costs more than what a small request would save
// by it.
#pragma once

#include <vector>

#include "launcher/common/base/fd.h"

namespace caisson::egress {

struct Pipe {
  Fd out, in;  // to read from, to write to
};

class Pipes {
 public:
  static constexpr std::size_t kMostKept = 32;
  // Empty where the system has none left: the connection goes on copying.
  [[nodiscard]] Pipe take();
  void give_back(Pipe pipe);  // an empty one: what is in it would go to another connection

 private:
  std::vector<Pipe> kept_;
};

}  // namespace caisson::egress
