// The X server as this program uses it: its extensions, its screen, its pointer, and input as if from devices (XTEST). Coroutines
// of the loop's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/display/x_link.h"
#include "launcher/common/base/task.h"

namespace caisson::display {

struct Size {
  int width = 0, height = 0;
  bool operator==(const Size&) const = default;
};
struct Point {
  int x = 0, y = 0;
  bool operator==(const Point&) const = default;
};
struct Pointer {
  Point at;
  std::uint16_t mask = 0;  // modifiers and buttons, as in events
};

// Numbers of the extensions' requests. Each is there, but `shm` may be absent.
struct Extensions {
  std::uint8_t xtest = 0, xfixes = 0, randr = 0, xkb = 0;
  std::optional<std::uint8_t> shm;               // with descriptors (1.2)
  std::uint8_t xfixes_event = 0, xkb_event = 0;  // numbers of their first events
};

class Server {
 public:
  explicit Server(Link& link) : link_(link) {}
  // Asks for the extensions. unavailable: one that is needed is missing.
  [[nodiscard]] Task<Status> start();

  [[nodiscard]] Link& link() const { return link_; }
  [[nodiscard]] const Extensions& extensions() const { return extensions_; }
  [[nodiscard]] std::uint32_t root() const { return link_.setup().root; }

  [[nodiscard]] Task<Result<Size>> size();
  [[nodiscard]] Task<Result<Pointer>> pointer();
  [[nodiscard]] Task<Result<std::uint32_t>> atom(std::string name);

  // Input of the XTEST devices; sync() tells when the server has carried it out.
  void move(Point to);
  void button(int number, bool down);
  void key(std::uint8_t keycode, bool down);

 private:
  [[nodiscard]] Task<Result<xcb_query_extension_reply_t>> extension(std::string name);
  void fake(std::uint8_t type, std::uint8_t detail, Point at);

  Link& link_;
  Extensions extensions_;
};

}  // namespace caisson::display
