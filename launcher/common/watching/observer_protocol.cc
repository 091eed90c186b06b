#include "launcher/common/watching/observer_protocol.h"

#include <charconv>
#include <cstring>
#include <ranges>

namespace caisson::auditor {

std::optional<Texts> parse_told(std::string_view message) {
  Texts out{};
  if (message.size() < sizeof out.head) return std::nullopt;
  std::memcpy(&out.head, message.data(), sizeof out.head);
  message.remove_prefix(sizeof out.head);
  if (out.head.type != Told::Type::call && out.head.type != Told::Type::gone) return std::nullopt;
  for (std::size_t i = 0; i < std::size(out.texts); ++i) {
    const std::uint32_t size = out.head.sizes[i];
    if (size == Told::kUnread) continue;
    if (size > kMaxPath || size > message.size()) return std::nullopt;
    out.texts[i] = message.substr(0, size);
    message.remove_prefix(size);
  }
  return message.empty() ? std::optional(out) : std::nullopt;
}

std::vector<int> refused_numbers(std::string_view refusals) {
  std::vector<int> out;
  for (const auto line : std::views::split(refusals, '\n'))
    if (int nr = 0; out.size() < kMaxRefused && std::from_chars(line.data(), line.data() + line.size(), nr).ec == std::errc{})
      out.push_back(nr);
  return out;
}

}  // namespace caisson::auditor
