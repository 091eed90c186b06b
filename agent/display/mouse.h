// The pointer: moved, its buttons pressed, its wheel turned. Buttons that are held are released by themselves after a time.
// Actions come one after the other, so no two functions run at once.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "agent/display/x_server.h"

namespace caisson::display {

inline constexpr int kLeftButton = 1, kMiddleButton = 2, kRightButton = 3;

// The places of a drag after its beginning, evenly; the last is `to`.
inline constexpr int kDragSteps = 20;
inline constexpr std::int64_t kDragUs = 200'000;
[[nodiscard]] std::vector<Point> plan_drag(Point from, Point to);
// The buttons that a turn of the wheel presses, one for each notch: 4 up, 5 down, 6 left, 7 right.
[[nodiscard]] std::vector<int> plan_scroll(int dx, int dy);
// invalid_argument, with the screen's size: the place is not on it.
[[nodiscard]] Status check_on_screen(Point at, Size screen);

class Mouse {
 public:
  Mouse(Server& server, std::int64_t hold_us) : server_(server), hold_us_(hold_us) {}
  Mouse(const Mouse&) = delete;
  Mouse& operator=(const Mouse&) = delete;
  ~Mouse();

  // Each is done when the server has carried it out.
  [[nodiscard]] Task<Status> move(Point to);
  [[nodiscard]] Task<Status> move_by(Point offset);
  // At a place, or where the pointer is.
  [[nodiscard]] Task<Status> click(std::optional<Point> at, int button, int times);
  [[nodiscard]] Task<Status> down(int button);
  [[nodiscard]] Task<Status> up(int button);
  // With the left button, which is pressed unless it is held.
  [[nodiscard]] Task<Status> drag(Point to);
  [[nodiscard]] Task<Status> drag_by(Point offset);
  [[nodiscard]] Task<Status> scroll(int dx, int dy);
  // Releases what is held, for a program that is about to end: nothing is awaited.
  void let_go();

 private:
  [[nodiscard]] Task<Result<Point>> target(Point offset);
  void release(int button);

  Server& server_;
  const std::int64_t hold_us_;
  std::map<int, Loop::TimerId> held_;
};

}  // namespace caisson::display
