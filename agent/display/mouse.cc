#include "agent/display/mouse.h"

#include <algorithm>
#include <cstdlib>

#include "agent/display/sleep.h"

namespace caisson::display {
namespace {

constexpr std::int64_t kBetweenClicksUs = 40'000;

Status done(Result<std::string> answer) { return answer ? Status() : Status(std::unexpected(std::move(answer).error())); }

}  // namespace

std::vector<Point> plan_drag(Point from, Point to) {
  std::vector<Point> out;
  for (int step = 1; step <= kDragSteps; ++step)
    out.push_back({.x = from.x + (to.x - from.x) * step / kDragSteps, .y = from.y + (to.y - from.y) * step / kDragSteps});
  return out;
}

std::vector<int> plan_scroll(int dx, int dy) {
  std::vector<int> out(static_cast<std::size_t>(std::abs(dy)), dy > 0 ? 4 : 5);
  out.insert(out.end(), static_cast<std::size_t>(std::abs(dx)), dx > 0 ? 6 : 7);
  return out;
}

Status check_on_screen(Point at, Size screen) {
  if (at.x >= 0 && at.y >= 0 && at.x < screen.width && at.y < screen.height) return {};
  return fail(Code::invalid_argument, "the place " + std::to_string(at.x) + ", " + std::to_string(at.y) +
                                          " is off the screen, which has " + std::to_string(screen.width) + " x " +
                                          std::to_string(screen.height) + " pixels");
}

Mouse::~Mouse() {
  for (const auto& [button, timer] : held_) server_.link().loop().cancel(timer);
}

Task<Status> Mouse::move(Point to) {
  CO_TRY(server_.link().ready());
  CO_TRY_ASSIGN(const Size screen, co_await server_.size());
  CO_TRY(check_on_screen(to, screen));
  server_.move(to);
  co_return done(co_await server_.link().sync());
}

Task<Result<Point>> Mouse::target(Point offset) {
  CO_TRY(server_.link().ready());
  CO_TRY_ASSIGN(const Pointer pointer, co_await server_.pointer());
  Point to = pointer.at;
  to.x += offset.x;
  to.y += offset.y;
  co_return to;
}

Task<Status> Mouse::move_by(Point offset) {
  CO_TRY_ASSIGN(const Point to, co_await target(offset));
  co_return co_await move(to);
}

Task<Status> Mouse::click(std::optional<Point> at, int button, int times) {
  CO_TRY(server_.link().ready());
  if (at) CO_TRY(co_await move(*at));
  for (int i = 0; i < times; ++i) {
    if (i > 0) co_await Sleep(server_.link().loop(), sys::monotonic_us() + kBetweenClicksUs);
    server_.button(button, true);
    server_.button(button, false);
    CO_TRY(co_await server_.link().sync());
  }
  // It is up now, whoever pressed it before.
  if (const auto held = held_.extract(button); !held.empty()) server_.link().loop().cancel(held.mapped());
  co_return Status();
}

Task<Status> Mouse::down(int button) {
  CO_TRY(server_.link().ready());
  server_.button(button, true);
  Loop& loop = server_.link().loop();
  if (const auto before = held_.find(button); before != held_.end()) loop.cancel(before->second);
  held_[button] = loop.after(hold_us_, [this, button] { release(button); });
  co_return done(co_await server_.link().sync());
}

void Mouse::release(int button) {
  if (const auto held = held_.extract(button); !held.empty()) server_.link().loop().cancel(held.mapped());
  server_.button(button, false);
}

Task<Status> Mouse::up(int button) {
  CO_TRY(server_.link().ready());
  release(button);
  co_return done(co_await server_.link().sync());
}

Task<Status> Mouse::drag(Point to) {
  CO_TRY(server_.link().ready());
  CO_TRY_ASSIGN(const Size screen, co_await server_.size());
  CO_TRY(check_on_screen(to, screen));
  CO_TRY_ASSIGN(const Pointer pointer, co_await server_.pointer());
  if (!held_.contains(kLeftButton)) CO_TRY(co_await down(kLeftButton));
  const std::int64_t began_us = sys::monotonic_us();
  Status moved;
  std::int64_t step = 0;
  for (const Point& place : plan_drag(pointer.at, to)) {
    co_await Sleep(server_.link().loop(), began_us + ++step * kDragUs / kDragSteps);
    server_.move(place);
    moved = done(co_await server_.link().sync());
    if (!moved) break;
  }
  // Also after a failure: a button that stays down would be a drag of whatever comes next.
  release(kLeftButton);
  CO_TRY(std::move(moved));
  co_return done(co_await server_.link().sync());
}

Task<Status> Mouse::drag_by(Point offset) {
  CO_TRY_ASSIGN(const Point to, co_await target(offset));
  co_return co_await drag(to);
}

Task<Status> Mouse::scroll(int dx, int dy) {
  CO_TRY(server_.link().ready());
  for (const int button : plan_scroll(dx, dy)) {
    server_.button(button, true);
    server_.button(button, false);
  }
  co_return done(co_await server_.link().sync());
}

void Mouse::let_go() {
  while (!held_.empty()) release(held_.begin()->first);
}

}  // namespace caisson::display
