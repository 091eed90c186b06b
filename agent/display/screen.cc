#include "agent/display/screen.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xcb/shm.h>
#include <xcb/xfixes.h>

#include <vector>

namespace caisson::display {
namespace {

constexpr std::size_t kHead = 32;
constexpr std::size_t kMostCursor = kHead + std::size_t{kMostCursorSide} * kMostCursorSide * 4;

std::size_t bytes_of_size(Size size) { return static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 4; }

}  // namespace

void Screen::unmap() {
  if (memory_ != nullptr) ::munmap(memory_, memory_size_);
  memory_ = nullptr;
  size_ = Size();
}

std::uint8_t* Screen::pixels() {
  if (!copied_.empty()) return reinterpret_cast<std::uint8_t*>(copied_.data());
  return static_cast<std::uint8_t*>(memory_);
}

Task<Status> Screen::share(Size size) {
  if (size == size_) co_return Status();
  const std::uint8_t shm = *server_.extensions().shm;
  if (segment_ != 0) {
    xcb_shm_detach_request_t detach{};
    detach.shmseg = segment_;
    server_.link().send(extension_request(shm, XCB_SHM_DETACH, detach));
    segment_ = 0;
  }
  unmap();
  const std::size_t bytes = bytes_of_size(size);
  Fd memory(::memfd_create("screen", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) co_return sys_error("memfd_create");
  // A hostile server could otherwise make it smaller: reading the pixels would then be SIGBUS.
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) co_return sys_error("seal a memfd");
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) co_return sys_error("mmap");
  memory_ = mapped;
  memory_size_ = bytes;
  xcb_shm_attach_fd_request_t attach{};
  attach.shmseg = server_.link().new_id();
  std::string request = extension_request(shm, XCB_SHM_ATTACH_FD, attach);
  CO_TRY(co_await server_.link().check(std::move(request), std::move(memory)));
  segment_ = attach.shmseg;
  size_ = size;
  co_return Status();
}

Task<Status> Screen::fetch(Size size) {
  copied_.clear();
  copied_.shrink_to_fit();
  if (shared_ && server_.extensions().shm) {
    if (const Status attached = co_await share(size); attached) {
      xcb_shm_get_image_request_t request{};
      request.drawable = server_.root();
      request.width = static_cast<std::uint16_t>(size.width);
      request.height = static_cast<std::uint16_t>(size.height);
      request.plane_mask = ~0U;
      request.format = XCB_IMAGE_FORMAT_Z_PIXMAP;
      request.shmseg = segment_;
      const std::string bytes = extension_request(*server_.extensions().shm, XCB_SHM_GET_IMAGE, request);
      CO_TRY(co_await server_.link().ask(bytes));
      co_return Status();
    } else if (attached.error().code == Code::timeout) {
      co_return attached;
    }
    shared_ = false;  // it says that it can, and refuses
  }
  xcb_get_image_request_t request{};
  request.format = XCB_IMAGE_FORMAT_Z_PIXMAP;
  request.drawable = server_.root();
  request.width = static_cast<std::uint16_t>(size.width);
  request.height = static_cast<std::uint16_t>(size.height);
  request.plane_mask = ~0U;
  const std::size_t bytes = bytes_of_size(size);
  CO_TRY_ASSIGN(copied_, co_await server_.link().ask(core_request(XCB_GET_IMAGE, request), kHead + bytes));
  if (copied_.size() != kHead + bytes) co_return fail(Code::protocol, "the X server gives a picture of another size");
  copied_.erase(0, kHead);
  co_return Status();
}

Task<Status> Screen::add_cursor(Size size) {
  const xcb_xfixes_get_cursor_image_request_t request{};
  const std::string bytes = extension_request(server_.extensions().xfixes, XCB_XFIXES_GET_CURSOR_IMAGE, request);
  CO_TRY_ASSIGN(const std::string reply, co_await server_.link().ask(bytes, kMostCursor));
  const auto head = read_at<xcb_xfixes_get_cursor_image_reply_t>(reply);
  const std::size_t count = std::size_t{head.width} * head.height;
  if (head.width > kMostCursorSide || head.height > kMostCursorSide || reply.size() < kHead + count * 4)
    co_return fail(Code::protocol, "the X server gives a pointer's picture that is cut short");
  std::vector<std::uint32_t> argb(count);
  if (count > 0) std::memcpy(argb.data(), reply.data() + kHead, count * 4);
  // Not into the shared memory: the server's next picture may come into it at any time.
  if (copied_.empty()) copied_.assign(static_cast<const char*>(memory_), bytes_of_size(size));
  Cursor cursor;
  cursor.x = head.x;
  cursor.y = head.y;
  cursor.hot_x = head.xhot;
  cursor.hot_y = head.yhot;
  cursor.width = head.width;
  cursor.height = head.height;
  cursor.argb = argb;
  draw_cursor(cursor, size.width, size.height, pixels());
  co_return Status();
}

Task<Result<Shot>> Screen::shoot(ShotAsked asked, std::size_t most) {
  const Turns::Turn turn = co_await turns_.take();
  CO_TRY(server_.link().ready());
  if (!server_.link().setup().is_bgrx) co_return fail(Code::unavailable, "the screen does not have 24 bits of colour");
  CO_TRY_ASSIGN(const Size size, co_await server_.size());
  if (std::int64_t{size.width} * size.height > kMostPixels) co_return fail(Code::limit, "the screen is too large for a picture");
  CO_TRY(co_await fetch(size));
  if (asked.cursor) CO_TRY(co_await add_cursor(size));
  Picture picture;
  picture.width = size.width;
  picture.height = size.height;
  picture.pixels = pixels();
  Shot shot;
  shot.size = size;
  auto encoded = asked.jpeg ? encode_jpeg(picture, asked.quality, most) : encode_png(picture, most);
  copied_ = std::string();
  CO_TRY_ASSIGN(shot.bytes, std::move(encoded));
  co_return shot;
}

}  // namespace caisson::display
