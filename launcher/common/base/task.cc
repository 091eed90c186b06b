#include "launcher/common/base/task.h"

#include <sys/epoll.h>

#include "launcher/common/base/sys.h"

namespace caisson {

void Wait::arm(std::coroutine_handle<> waiting) {
  timer_ = loop_.after(deadline_us_ - sys::monotonic_us(), [waiting] { waiting.resume(); });
}

void Readable::await_suspend(std::coroutine_handle<> waiting) {
  arm(waiting);
  const auto ready = [this, waiting](std::uint32_t) {
    ready_ = true;
    waiting.resume();
  };
  // Where it cannot be watched nothing is heard in time.
  (void)loop_.watch(fd_, EPOLLIN, ready);
}

void Exit::await_suspend(std::coroutine_handle<> waiting) {
  arm(waiting);
  loop_.on_exit(pid_, [this, waiting](const ChildExit& exit) {
    exit_ = exit;
    waiting.resume();
  });
}

// From the loop: whoever gives its turn back is not done yet, and may be going for good.
void Turns::next() {
  timer_ = loop_.after(0, [this] {
    busy_ = !waiting_.empty();
    if (!busy_) return;
    const auto task = waiting_.front()->task_;
    waiting_.pop_front();
    task.resume();
  });
}

}  // namespace caisson
