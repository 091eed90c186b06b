// The event loop of door and dialer: epoll with sources, deadlines, and turns for those that would go on at once. Unlike the
// launcher's (common/base/loop.h) it has no signals and no children, and a connection costs it one registration and no
// allocation: edges are reported, and whoever hears of one tries until it would block (stream.h). One thread.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <type_traits>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::egress {

class Poll {
 public:
  class Source {  // what a descriptor belongs to
   public:
    virtual void ready(std::uint32_t events) = 0;

   protected:
    ~Source() = default;
  };
  class Timer {  // fires once, from the loop; its owner may set it again, or go, at any time
   public:
    // fire: what has one pointer, as [this] does, or nothing. Each connection has three timers, so they are small.
    template <class Fire>
    Timer(Poll& poll, Fire fire) : poll_(poll), fire_([](void* what) { (*static_cast<Fire*>(what))(); }) {
      static_assert(sizeof fire <= sizeof what_ && std::is_trivially_copyable_v<Fire>);
      std::memcpy(&what_, &fire, sizeof fire);
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    ~Timer() { clear(); }
    void set(std::int64_t due_us);
    void clear();
    [[nodiscard]] bool is_set() const { return due_us_ != 0; }

   private:
    friend Poll;
    Poll& poll_;
    void* what_ = nullptr;
    void (*const fire_)(void* what);
    std::int64_t due_us_ = 0;
  };

  [[nodiscard]] static Result<std::unique_ptr<Poll>> create();
  // Level-triggered unless `events` has EPOLLET.
  [[nodiscard]] Status watch(int fd, std::uint32_t events, Source& source);
  [[nodiscard]] Status rewatch(int fd, std::uint32_t events, Source& source);
  // Before descriptor or source go: nothing that has come already reaches the source.
  void unwatch(int fd, Source& source);
  // Called at the end of this turn, when no callback of a source is on the stack: the place to delete what called it.
  void later(std::function<void()> f) { later_.push_back(std::move(f)); }

  // CLOCK_MONOTONIC as of this turn.
  [[nodiscard]] std::int64_t now_us() const { return now_us_; }
  // Until `done` says so. Errors: io, when epoll itself fails.
  [[nodiscard]] Status run(const std::function<bool()>& done);

 private:
  explicit Poll(Fd epoll);
  [[nodiscard]] int timeout_ms() const;
  void fire_timers();

  Fd epoll_;
  std::int64_t now_us_ = 0;
  std::set<std::pair<std::int64_t, Timer*>> timers_;
  std::vector<std::function<void()>> later_;
  std::array<epoll_event, 128> events_{};
  int count_ = 0, at_ = 0;  // of events_, in this turn
};

}  // namespace caisson::egress
