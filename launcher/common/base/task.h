// Functions that wait without holding up the loop: C++20 coroutines of the one thread. A task begins when it is called, goes on
// from the loop, and ends when its owner goes: what it holds is released then, wherever it waits. Its parameters are values, or
// outlive it because its caller waits for it. No `{` and no lambda stands inside a statement with co_await.
#pragma once

#include <coroutine>
#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include "launcher/common/base/loop.h"

namespace caisson {

template <class T>
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;
  struct Ended {  // goes on with whoever waits for it
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle of) const noexcept { return of.promise().waiting; }
    void await_resume() const noexcept {}
  };
  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> waiting = std::noop_coroutine();
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    Ended final_suspend() const noexcept { return {}; }
    template <class U>
    void return_value(U&& result) {
      value.emplace(std::forward<U>(result));
    }
    void unhandled_exception() const noexcept { std::terminate(); }  // none is thrown but for memory
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  [[nodiscard]] bool done() const { return handle_.done(); }
  [[nodiscard]] T take() { return std::move(*handle_.promise().value); }  // once, when it is done
  bool await_ready() const { return done(); }
  void await_suspend(std::coroutine_handle<> waiting) { handle_.promise().waiting = waiting; }
  T await_resume() { return take(); }

 private:
  explicit Task(Handle handle) : handle_(handle) {}
  Handle handle_;
};

// What a task waits for, at most until `deadline_us` (monotonic). It takes back what it asked of the loop when it goes.
class Wait {
 public:
  Wait(Loop& loop, std::int64_t deadline_us) : loop_(loop), deadline_us_(deadline_us) {}
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  bool await_ready() const { return false; }

 protected:
  ~Wait() { loop_.cancel(timer_); }
  void arm(std::coroutine_handle<> waiting);

  Loop& loop_;

 private:
  const std::int64_t deadline_us_;
  Loop::TimerId timer_ = 0;
};

// co_await: true when there is something to read, or its peer is gone; false when time is over.
class Readable : Wait {
 public:
  Readable(Loop& loop, int fd, std::int64_t deadline_us) : Wait(loop, deadline_us), fd_(fd) {}
  ~Readable() { loop_.unwatch(fd_); }
  using Wait::await_ready;
  void await_suspend(std::coroutine_handle<> waiting);
  bool await_resume() const { return ready_; }

 private:
  const int fd_;
  bool ready_ = false;
};

// co_await: how a child of ours ended; nothing when time is over.
class Exit : Wait {
 public:
  Exit(Loop& loop, pid_t pid, std::int64_t deadline_us) : Wait(loop, deadline_us), pid_(pid) {}
  ~Exit() { loop_.forget_exit(pid_); }
  using Wait::await_ready;
  void await_suspend(std::coroutine_handle<> waiting);
  std::optional<ChildExit> await_resume() const { return exit_; }

 private:
  const pid_t pid_;
  std::optional<ChildExit> exit_;
};

// One task at a time, in the order of asking: `const Turns::Turn turn = co_await turns.take();` lasts as long as `turn`.
class Turns {
 public:
  explicit Turns(Loop& loop) : loop_(loop) {}
  class Turn {
   public:
    explicit Turn(Turns& turns) : turns_(&turns) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    ~Turn() {
      if (turns_ != nullptr) turns_->next();
    }

   private:
    Turns* turns_;
  };
  class Place {  // in the queue, which it leaves when its task goes
   public:
    explicit Place(Turns& turns) : turns_(turns) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { std::erase(turns_.waiting_, this); }
    bool await_ready() const { return !std::exchange(turns_.busy_, true); }
    void await_suspend(std::coroutine_handle<> task) {
      task_ = task;
      turns_.waiting_.push_back(this);
    }
    Turn await_resume() const { return Turn(turns_); }

   private:
    friend Turns;
    Turns& turns_;
    std::coroutine_handle<> task_;
  };
  ~Turns() { loop_.cancel(timer_); }
  [[nodiscard]] Place take() { return Place(*this); }

 private:
  void next();

  Loop& loop_;
  Loop::TimerId timer_ = 0;
  bool busy_ = false;
  std::deque<Place*> waiting_;
};

}  // namespace caisson
