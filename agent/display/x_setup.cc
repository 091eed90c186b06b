#include "agent/display/x_setup.h"

#include <xcb/xproto.h>

#include <charconv>
#include <map>

#include "agent/display/x_wire.h"

namespace caisson::display {
namespace {

constexpr std::uint8_t kRefused = 0, kAccepted = 1;

std::unexpected<Error> cut() { return fail(Code::protocol, "the X server's first answer is cut short"); }

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// Bits of a pixel for each depth.
std::map<int, int> pixel_bits(std::string_view formats) {
  std::map<int, int> bits;
  for (; formats.size() >= sizeof(xcb_format_t); formats.remove_prefix(sizeof(xcb_format_t))) {
    const auto format = read_at<xcb_format_t>(formats);
    bits[format.depth] = format.bits_per_pixel;
  }
  return bits;
}

bool has_bgrx_visual(std::string_view visuals, std::uint32_t id) {
  for (; visuals.size() >= sizeof(xcb_visualtype_t); visuals.remove_prefix(sizeof(xcb_visualtype_t))) {
    const auto visual = read_at<xcb_visualtype_t>(visuals);
    if (visual.visual_id == id)
      return visual._class == XCB_VISUAL_CLASS_TRUE_COLOR && visual.red_mask == 0xFF0000 && visual.green_mask == 0xFF00 &&
             visual.blue_mask == 0xFF;
  }
  return false;
}

}  // namespace

Result<int> display_number(std::string_view name) {
  int number = -1;
  const std::string_view digits = name.starts_with(':') ? name.substr(1) : "";
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
  if (error != std::errc() || number < 0 || number > 65535 || (!rest.empty() && rest != ".0"))
    return fail(Code::invalid_argument, "a display is named as :99, not " + quote(name));
  return number;
}

std::string setup_request() {
  xcb_setup_request_t request{};
  request.byte_order = 'l';
  request.protocol_major_version = 11;
  std::string out(bytes_of(request));
  pad_to_words(out);
  return out;
}

std::size_t setup_rest(std::string_view head) { return std::size_t{read_at<std::uint16_t>(head, 6)} * 4; }

Result<Setup> parse_setup(std::string_view answer) {
  const auto status = read_at<std::uint8_t>(answer);
  if (answer.size() < kSetupHead || answer.size() != kSetupHead + setup_rest(answer)) return cut();
  if (status == kRefused) {
    const std::size_t size = read_at<std::uint8_t>(answer, 1);
    return fail(Code::permission_denied, "the X server refuses: " + quote(answer.substr(kSetupHead, size)));
  }
  if (status != kAccepted) return fail(Code::protocol, "the X server asks for a kind of authorization that is not known");
  const auto head = read_at<xcb_setup_t>(answer);
  const std::size_t formats_at = sizeof head + padded(head.vendor_len), formats = head.pixmap_formats_len * sizeof(xcb_format_t);
  if (answer.size() < formats_at + formats + sizeof(xcb_screen_t) || head.roots_len == 0) return cut();
  std::map<int, int> bits = pixel_bits(answer.substr(formats_at, formats));
  std::string_view rest = answer.substr(formats_at + formats);
  const auto screen = read_at<xcb_screen_t>(rest);
  rest.remove_prefix(sizeof screen);
  Setup setup{.id_base = head.resource_id_base,
              .id_mask = head.resource_id_mask,
              .root = screen.root,
              .root_visual = screen.root_visual,
              .root_depth = screen.root_depth,
              .min_keycode = head.min_keycode,
              .max_keycode = head.max_keycode};
  if (setup.min_keycode < 8 || setup.max_keycode < setup.min_keycode)
    return fail(Code::protocol, "the X server has no range of keycodes");
  if (setup.id_mask < 0xFF || (setup.id_base & setup.id_mask) != 0)
    return fail(Code::protocol, "the X server gives too few resource ids");
  for (int i = 0; i < screen.allowed_depths_len; ++i) {
    const auto depth = read_at<xcb_depth_t>(rest);
    const std::size_t visuals = depth.visuals_len * sizeof(xcb_visualtype_t);
    if (rest.size() < sizeof depth + visuals) return cut();
    if (depth.depth == setup.root_depth && has_bgrx_visual(rest.substr(sizeof depth, visuals), setup.root_visual))
      setup.is_bgrx = bits[depth.depth] == 32 && head.image_byte_order == XCB_IMAGE_ORDER_LSB_FIRST;
    rest.remove_prefix(sizeof depth + visuals);
  }
  return setup;
}

}  // namespace caisson::display
