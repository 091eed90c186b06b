// Hands a value from a callback to the one coroutine that waits for it. The newest value is kept until it is taken.
#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "launcher/common/base/loop.h"
#include "launcher/common/base/sys.h"

namespace caisson::display {

template <class T>
class Mailbox {
 public:
  explicit Mailbox(Loop& loop) : loop_(loop) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  void put(T value) {
    value_ = std::move(value);
    if (const auto waiting = std::exchange(waiting_, {})) waiting.resume();
  }
  void clear() { value_.reset(); }

  // co_await mailbox.next(deadline): the value; nullopt when the time (monotonic) is over.
  class Next {
   public:
    Next(Mailbox& box, std::int64_t deadline_us) : box_(box), deadline_us_(deadline_us) {}
    Next(const Next&) = delete;
    Next& operator=(const Next&) = delete;
    ~Next() {
      box_.loop_.cancel(timer_);
      box_.waiting_ = {};
    }
    [[nodiscard]] bool await_ready() const { return box_.value_.has_value(); }
    void await_suspend(std::coroutine_handle<> waiting) {
      box_.waiting_ = waiting;
      timer_ = box_.loop_.after(deadline_us_ - sys::monotonic_us(), [this, waiting] {
        box_.waiting_ = {};
        waiting.resume();
      });
    }
    [[nodiscard]] std::optional<T> await_resume() { return std::exchange(box_.value_, std::nullopt); }

   private:
    Mailbox& box_;
    const std::int64_t deadline_us_;
    Loop::TimerId timer_ = 0;
  };
  [[nodiscard]] Next next(std::int64_t deadline_us) { return Next(*this, deadline_us); }

 private:
  Loop& loop_;
  std::optional<T> value_;
  std::coroutine_handle<> waiting_;
};

}  // namespace caisson::display
