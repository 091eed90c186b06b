// At which ports the door listens where no packet filter brings every port to it (common/capture/capture.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "launcher/egress/list/lists.h"

namespace caisson::egress {

inline constexpr std::size_t kMostPorts = 64;

struct NamedPorts {
  // 80 first: none is ever without it. Then the others at which most is asked for, and what rules name that allow, the narrowest
  // ranges first, so that one rule with a wide one takes no other's port.
  std::vector<std::uint16_t> ports;
  bool all = true;  // those that rules name are all among them
};
// door: its own port, a proxy at the loopback and nothing at any other address.
[[nodiscard]] NamedPorts named_ports(std::span<const List* const> lists, std::uint16_t door);
[[nodiscard]] NamedPorts named_ports(const Lists& lists, std::uint16_t door);
// "22, 80, 8000-8010"
[[nodiscard]] std::string ports_text(std::vector<std::uint16_t> ports);

}  // namespace caisson::egress
