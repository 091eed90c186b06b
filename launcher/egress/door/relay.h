// Both directions of a connection, until both have ended. Bytes are copied through one buffer that all connections share, because
// most move little; a direction that has moved kCopyFirst goes on with splice(2) and a pipe. A connection that waits holds
// neither buffer nor pipe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/egress/door/limits.h"
#include "launcher/egress/door/pipes.h"
#include "launcher/egress/loop/stream.h"

namespace caisson::egress {

class Relay final : Stream::Hearer {
 public:
  static constexpr std::size_t kBuffer = 64 * 1024, kCopyFirst = 256 * 1024, kATurn = 256 * 1024;
  enum class End { done, reset, idle };
  struct Shared {
    Pipes& pipes;
    ByteBudget& bytes;  // of the workspace
  };

  // `first`: bytes of the client that were read already. `ended` is called once, from the loop; this may be deleted only after it
  // returned.
  Relay(Stream& client, Stream& upstream, std::string first, Shared shared, std::int64_t idle_us, std::function<void(End)> ended);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  void begin() { stirred(); }

  [[nodiscard]] std::uint64_t up() const { return up_.moved; }
  [[nodiscard]] std::uint64_t down() const { return down_.moved; }

 private:
  struct Direction {
    Stream &from, &to;
    std::string rest;  // read, and not taken by `to`
    Pipe pipe;
    std::size_t in_pipe = 0;
    std::uint64_t moved = 0;
    bool ended = false, shut = false;
  };
  enum class Step { again, blocked, failed };

  void stirred() override;
  void idle();
  [[nodiscard]] bool pump(Direction& direction);
  [[nodiscard]] Step step(Direction& direction, std::size_t most);
  [[nodiscard]] Step write_rest(Direction& direction);
  [[nodiscard]] Step drain_pipe(Direction& direction);
  [[nodiscard]] Step fill_pipe(Direction& direction, std::size_t most);
  [[nodiscard]] Step copy(Direction& direction, std::size_t most);
  void count(Direction& direction, std::size_t bytes);
  void finish(End end);

  Poll& poll_;
  Direction up_, down_;
  Pipes& pipes_;
  ByteBudget& bytes_;
  const std::int64_t idle_us_;
  std::int64_t moved_us_;  // when something moved last
  Poll::Timer idle_timer_, again_;
  const std::function<void(End)> ended_;
  bool finished_ = false;
};

}  // namespace caisson::egress
