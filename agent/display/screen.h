// Pictures of the whole screen: through memory that the X server shares (MIT-SHM with a memfd; System V's does not cross
// sessions), or through the connection where it cannot. One at a time.
#pragma once

#include "agent/display/image.h"
#include "agent/display/x_server.h"

namespace caisson::display {

struct ShotAsked {
  bool jpeg = false;
  int quality = 80;  // of a JPEG
  bool cursor = false;
};
struct Shot {
  Size size;
  std::string bytes;
};

class Screen {
 public:
  // `shared`: whether memory is shared if the server can.
  Screen(Server& server, bool shared) : server_(server), shared_(shared), turns_(server.link().loop()) {}
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() { unmap(); }

  // Code::limit: the screen, or the image, is too large.
  [[nodiscard]] Task<Result<Shot>> shoot(ShotAsked asked, std::size_t most);

 private:
  // Memory for a screen of this size, which the server knows.
  [[nodiscard]] Task<Status> share(Size size);
  [[nodiscard]] Task<Status> fetch(Size size);
  [[nodiscard]] Task<Status> add_cursor(Size size);
  [[nodiscard]] std::uint8_t* pixels();
  void unmap();

  Server& server_;
  bool shared_;
  Turns turns_;
  Size size_;  // of what is mapped
  std::uint32_t segment_ = 0;
  void* memory_ = nullptr;
  std::size_t memory_size_ = 0;
  std::string copied_;  // without shared memory, or to draw the pointer on
};

}  // namespace caisson::display
