#include "agent/display/modes.h"

#include <xcb/randr.h>

#include <algorithm>

namespace caisson::display {
namespace {

constexpr std::size_t kMostResources = 256 * 1024;
constexpr int kPixelsPerInch = 96;

std::uint32_t millimetres(int pixels) { return static_cast<std::uint32_t>(pixels * 254 / 10 / kPixelsPerInch); }

Result<std::vector<std::uint32_t>> take_ids(std::string_view& bytes, std::size_t count) {
  std::vector<std::uint32_t> out;
  if (bytes.size() < count * 4) return fail(Code::protocol, "the X server's list of modes is cut short");
  for (std::size_t i = 0; i < count; ++i) out.push_back(read_at<std::uint32_t>(bytes, i * 4));
  bytes.remove_prefix(count * 4);
  return out;
}

// A new mode of the first output. Its times mean nothing where no monitor is.
Task<Result<std::uint32_t>> add_mode(Server& server, Size size, std::uint32_t output) {
  const std::string name = std::to_string(size.width) + "x" + std::to_string(size.height);
  xcb_randr_create_mode_request_t create{};
  create.window = server.root();
  create.mode_info.width = static_cast<std::uint16_t>(size.width);
  create.mode_info.height = static_cast<std::uint16_t>(size.height);
  create.mode_info.htotal = create.mode_info.width;
  create.mode_info.vtotal = create.mode_info.height;
  create.mode_info.dot_clock = static_cast<std::uint32_t>(size.width * size.height * 60);
  create.mode_info.name_len = static_cast<std::uint16_t>(name.size());
  const std::uint8_t randr = server.extensions().randr;
  const std::string request = extension_request(randr, XCB_RANDR_CREATE_MODE, create, name);
  CO_TRY_ASSIGN(const std::string reply, co_await server.link().ask(request));
  xcb_randr_add_output_mode_request_t add{};
  add.output = output;
  add.mode = read_at<xcb_randr_create_mode_reply_t>(reply).mode;
  CO_TRY(co_await server.link().check(extension_request(randr, XCB_RANDR_ADD_OUTPUT_MODE, add)));
  co_return add.mode;
}

}  // namespace

Result<Modes> parse_modes(std::string_view reply) {
  const auto head = read_at<xcb_randr_get_screen_resources_current_reply_t>(reply);
  if (reply.size() < sizeof head) return fail(Code::protocol, "the X server's list of modes is cut short");
  reply.remove_prefix(sizeof head);
  Modes made{.config_time = head.config_timestamp};
  TRY_ASSIGN(made.crtcs, take_ids(reply, head.num_crtcs));
  TRY_ASSIGN(made.outputs, take_ids(reply, head.num_outputs));
  if (reply.size() < head.num_modes * sizeof(xcb_randr_mode_info_t))
    return fail(Code::protocol, "the X server's list of modes is cut short");
  for (std::size_t i = 0; i < head.num_modes; ++i) {
    const auto mode = read_at<xcb_randr_mode_info_t>(reply, i * sizeof(xcb_randr_mode_info_t));
    made.modes.push_back({.id = mode.id, .size = {.width = mode.width, .height = mode.height}});
  }
  return made;
}

std::vector<Size> sizes_of(const Modes& modes) {
  std::vector<Size> out;
  for (const Mode& mode : modes.modes)
    if (std::ranges::find(out, mode.size) == out.end()) out.push_back(mode.size);
  return out;
}

Task<Result<Modes>> read_modes(Server& server) {
  xcb_randr_get_screen_resources_current_request_t request{};
  request.window = server.root();
  const std::string bytes = extension_request(server.extensions().randr, XCB_RANDR_GET_SCREEN_RESOURCES_CURRENT, request);
  CO_TRY_ASSIGN(const std::string reply, co_await server.link().ask(bytes, kMostResources));
  co_return parse_modes(reply);
}

Task<Result<Size>> resize(Server& server, Size wanted) {
  CO_TRY(server.link().ready());
  CO_TRY_ASSIGN(const Size before, co_await server.size());
  if (before == wanted) co_return before;
  CO_TRY_ASSIGN(const Modes modes, co_await read_modes(server));
  if (modes.crtcs.empty() || modes.outputs.empty()) co_return fail(Code::unavailable, "the X server has no output");
  std::uint32_t mode = 0;
  if (const auto found = std::ranges::find(modes.modes, wanted, &Mode::size); found != modes.modes.end()) mode = found->id;
  if (mode == 0) {
    CO_TRY_ASSIGN(mode, co_await add_mode(server, wanted, modes.outputs.front()));
  }

  // Sent in one piece and undivided by other clients' requests: a screen without an output is not seen by them.
  Link& link = server.link();
  const std::uint8_t randr = server.extensions().randr;
  link.send(core_request(XCB_GRAB_SERVER, xcb_grab_server_request_t{}));
  xcb_randr_set_crtc_config_request_t config{};
  config.crtc = modes.crtcs.front();
  config.config_timestamp = modes.config_time;
  config.rotation = XCB_RANDR_ROTATION_ROTATE_0;
  Link::Answer off = link.ask(extension_request(randr, XCB_RANDR_SET_CRTC_CONFIG, config));
  xcb_randr_set_screen_size_request_t screen{};
  screen.window = server.root();
  screen.width = static_cast<std::uint16_t>(wanted.width);
  screen.height = static_cast<std::uint16_t>(wanted.height);
  screen.mm_width = millimetres(wanted.width);
  screen.mm_height = millimetres(wanted.height);
  link.send(extension_request(randr, XCB_RANDR_SET_SCREEN_SIZE, screen));
  config.mode = mode;
  Link::Answer on = link.ask(extension_request(randr, XCB_RANDR_SET_CRTC_CONFIG, config, bytes_of(modes.outputs.front())));
  link.send(core_request(XCB_UNGRAB_SERVER, xcb_ungrab_server_request_t{}));
  CO_TRY(co_await off);
  CO_TRY_ASSIGN(const std::string reply, co_await on);
  if (const auto status = read_at<xcb_randr_set_crtc_config_reply_t>(reply).status; status != XCB_RANDR_SET_CONFIG_SUCCESS)
    co_return fail(Code::unavailable, "the X server refuses the size, with its status " + std::to_string(status));
  co_return co_await server.size();
}

}  // namespace caisson::display
