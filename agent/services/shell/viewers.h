// Viewers: the clients that watch a terminal and acknowledge what they have shown (/v1/shell/ws with flow=1). Decides whether the
// terminal's program waits for them, as it would wait for a slow terminal: it does while every viewer is a window behind. A
// viewer whose connection was cut counts for a while, so that it can go on where it was. Nobody stops a program for ever: a
// viewer that acknowledges nothing for kPatience no longer counts, and later finds a gap. Pure; the session waits
// (shell_runner.cc).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace caisson::services {

class Viewers {
 public:
  using Clock = std::chrono::steady_clock;
  // The most output that is sent ahead of the acknowledgements. Half of what a screen keeps: the kernel's buffer and one read
  // come on top before the program stands still.
  static constexpr std::uint64_t kWindowBytes = 128 * 1024;
  static constexpr std::chrono::seconds kPatience{30};

  struct Viewer {
    std::uint64_t sent = 0;          // offset after the last byte that was sent or skipped
    std::uint64_t acknowledged = 0;  // never more than sent
    bool waited_for = false;         // false: it only reads, so it must not slow the program
    std::optional<Clock::time_point> stalled_since, cut_at;
    [[nodiscard]] std::uint64_t allowance() const {
      const std::uint64_t ahead = sent - acknowledged;
      return ahead < kWindowBytes ? kWindowBytes - ahead : 0;
    }
    void acknowledge(std::uint64_t offset);
    // Bytes that are lost need no acknowledgement: a new window begins. Only for a viewer with an allowance, so that one that
    // stands still is sent nothing.
    void skip_to(std::uint64_t offset);
  };
  using ViewerPtr = std::shared_ptr<Viewer>;

  [[nodiscard]] ViewerPtr join(std::uint64_t offset, bool waited_for);
  // cut: without a closing handshake, so it may come back.
  void leave(const ViewerPtr& viewer, bool cut, Clock::time_point now);
  [[nodiscard]] std::size_t present() const;
  // Until when a program that has written `end` bytes waits; nullopt: it goes on.
  [[nodiscard]] std::optional<Clock::time_point> waits_until(std::uint64_t end, Clock::time_point now);

 private:
  std::vector<ViewerPtr> viewers_;
};

}  // namespace caisson::services
