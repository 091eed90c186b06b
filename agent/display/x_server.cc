#include "agent/display/x_server.h"

#include <xcb/randr.h>
#include <xcb/shm.h>
#include <xcb/xfixes.h>

#include <xcb/xtest.h>

#include "agent/display/xkb_wire.h"

namespace caisson::display {

Task<Result<xcb_query_extension_reply_t>> Server::extension(std::string name) {
  xcb_query_extension_request_t request{};
  request.name_len = static_cast<std::uint16_t>(name.size());
  CO_TRY_ASSIGN(const std::string reply, co_await link_.ask(core_request(XCB_QUERY_EXTENSION, request, name)));
  co_return read_at<xcb_query_extension_reply_t>(reply);
}

Task<Status> Server::start() {
  struct Needed {
    const char* name;
    std::uint8_t* number;
  };
  const Needed needed[] = {{"XTEST", &extensions_.xtest},
                           {"XFIXES", &extensions_.xfixes},
                           {"RANDR", &extensions_.randr},
                           {"XKEYBOARD", &extensions_.xkb}};
  for (const Needed& one : needed) {
    CO_TRY_ASSIGN(const auto found, co_await extension(one.name));
    if (found.present == 0) co_return fail(Code::unavailable, std::string("the X server lacks ") + one.name);
    *one.number = found.major_opcode;
    if (one.number == &extensions_.xfixes) extensions_.xfixes_event = found.first_event;
    if (one.number == &extensions_.xkb) extensions_.xkb_event = found.first_event;
  }
  xcb_xfixes_query_version_request_t xfixes{};
  xfixes.client_major_version = 5;
  CO_TRY(co_await link_.ask(extension_request(extensions_.xfixes, XCB_XFIXES_QUERY_VERSION, xfixes)));
  xcb_randr_query_version_request_t randr{};
  randr.major_version = 1;
  randr.minor_version = 3;
  CO_TRY(co_await link_.ask(extension_request(extensions_.randr, XCB_RANDR_QUERY_VERSION, randr)));
  xcb_xkb_use_extension_request_t xkb{};
  xkb.wantedMajor = 1;
  CO_TRY(co_await link_.ask(extension_request(extensions_.xkb, XCB_XKB_USE_EXTENSION, xkb)));

  CO_TRY_ASSIGN(const auto shm, co_await extension("MIT-SHM"));
  if (shm.present == 0) co_return Status();
  const xcb_shm_query_version_request_t version{};
  const std::string asked = extension_request(shm.major_opcode, XCB_SHM_QUERY_VERSION, version);
  CO_TRY_ASSIGN(const std::string reply, co_await link_.ask(asked));
  const auto has = read_at<xcb_shm_query_version_reply_t>(reply);
  if (has.major_version > 1 || (has.major_version == 1 && has.minor_version >= 2)) extensions_.shm = shm.major_opcode;
  co_return Status();
}

Task<Result<Size>> Server::size() {
  xcb_get_geometry_request_t request{};
  request.drawable = root();
  CO_TRY_ASSIGN(const std::string reply, co_await link_.ask(core_request(XCB_GET_GEOMETRY, request)));
  const auto geometry = read_at<xcb_get_geometry_reply_t>(reply);
  Size size;
  size.width = geometry.width;
  size.height = geometry.height;
  co_return size;
}

Task<Result<Pointer>> Server::pointer() {
  xcb_query_pointer_request_t request{};
  request.window = root();
  CO_TRY_ASSIGN(const std::string reply, co_await link_.ask(core_request(XCB_QUERY_POINTER, request)));
  const auto found = read_at<xcb_query_pointer_reply_t>(reply);
  Pointer pointer;
  pointer.at.x = found.root_x;
  pointer.at.y = found.root_y;
  pointer.mask = found.mask;
  co_return pointer;
}

Task<Result<std::uint32_t>> Server::atom(std::string name) {
  xcb_intern_atom_request_t request{};
  request.name_len = static_cast<std::uint16_t>(name.size());
  CO_TRY_ASSIGN(const std::string reply, co_await link_.ask(core_request(XCB_INTERN_ATOM, request, name)));
  co_return read_at<xcb_intern_atom_reply_t>(reply).atom;
}

void Server::fake(std::uint8_t type, std::uint8_t detail, Point at) {
  xcb_test_fake_input_request_t request{};
  request.type = type;
  request.detail = detail;
  request.root = root();
  request.rootX = static_cast<std::int16_t>(at.x);
  request.rootY = static_cast<std::int16_t>(at.y);
  link_.send(extension_request(extensions_.xtest, XCB_TEST_FAKE_INPUT, request));
}

void Server::move(Point to) { fake(XCB_MOTION_NOTIFY, 0, to); }
void Server::button(int number, bool down) {
  fake(down ? XCB_BUTTON_PRESS : XCB_BUTTON_RELEASE, static_cast<std::uint8_t>(number), Point());
}
void Server::key(std::uint8_t keycode, bool down) { fake(down ? XCB_KEY_PRESS : XCB_KEY_RELEASE, keycode, Point()); }

}  // namespace caisson::display
