#include "launcher/egress/door/pipes.h"

#include <fcntl.h>

namespace caisson::egress {

Pipe Pipes::take() {
  if (!kept_.empty()) {
    Pipe pipe = std::move(kept_.back());
    kept_.pop_back();
    return pipe;
  }
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  return {Fd(fds[0]), Fd(fds[1])};
}

void Pipes::give_back(Pipe pipe) {
  if (kept_.size() < kMostKept) kept_.push_back(std::move(pipe));
}

}  // namespace caisson::egress
