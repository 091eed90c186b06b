// co_await Sleep(loop, until_us): goes on at that moment (monotonic), or later. At least one turn of the loop passes.
#pragma once

#include <coroutine>

#include "launcher/common/base/loop.h"
#include "launcher/common/base/sys.h"

namespace caisson::display {

class Sleep {
 public:
  Sleep(Loop& loop, std::int64_t until_us) : loop_(loop), until_us_(until_us) {}
  Sleep(const Sleep&) = delete;
  Sleep& operator=(const Sleep&) = delete;
  ~Sleep() { loop_.cancel(timer_); }
  [[nodiscard]] bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    timer_ = loop_.after(until_us_ - sys::monotonic_us(), [waiting] { waiting.resume(); });
  }
  void await_resume() const {}

 private:
  Loop& loop_;
  const std::int64_t until_us_;
  Loop::TimerId timer_ = 0;
};

}  // namespace caisson::display
