// The screen's size (RANDR): what can be had, and how it is changed.
#pragma once

#include <string_view>
#include <vector>

#include "agent/display/x_server.h"

namespace caisson::display {

struct Mode {
  std::uint32_t id = 0;
  Size size;
};
struct Modes {
  std::uint32_t config_time = 0;
  std::vector<std::uint32_t> crtcs, outputs;
  std::vector<Mode> modes;
};
// Of the reply to RRGetScreenResourcesCurrent. protocol: it is cut short.
[[nodiscard]] Result<Modes> parse_modes(std::string_view reply);
// Each size once, in the server's order.
[[nodiscard]] std::vector<Size> sizes_of(const Modes& modes);

[[nodiscard]] Task<Result<Modes>> read_modes(Server& server);
// The screen gets this size, by a new mode where the server has none. The size that it has then, which another client may have
// changed again. unavailable: the server refuses.
[[nodiscard]] Task<Result<Size>> resize(Server& server, Size wanted);

}  // namespace caisson::display
