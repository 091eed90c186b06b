#include "launcher/egress/list/path.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace caisson::egress {
namespace {

// -1: these are no two digits.
int byte_of(std::string_view hex) {
  int byte = -1;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), byte, 16);
  return error == std::errc() && hex.size() == 2 && end == hex.data() + 2 && hex[0] != '-' ? byte : -1;
}

// No byte that starts nothing, and no character in more bytes than it needs: "%c0%ae" is a '.' to some.
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (size == 0 || size > text.size()) return false;
    std::uint32_t code = size == 1 ? first : first & (0x7fU >> size);
    for (const char c : text.substr(1, size - 1)) {
      const auto next = static_cast<unsigned char>(c);
      if (next >> 6 != 2) return false;
      code = code << 6 | (next & 0x3fU);
    }
    const bool longer = (size == 3 && code < 0x800) || (size == 4 && (code < 0x10000 || code > 0x10ffff));
    if (longer || (code >= 0xd800 && code < 0xe000)) return false;
    text.remove_prefix(size);
  }
  return true;
}

bool begins(std::string_view target, std::string_view path) {
  const std::string_view whole = target.substr(0, target.find('?'));
  if (!whole.starts_with(path)) return false;
  return path.ends_with('/') || whole.size() == path.size() || whole[path.size()] == '/';
}

}  // namespace

std::string_view fault_of_path(std::string_view path) {
  const bool printable = std::ranges::all_of(path, [](char c) { return c > 0x20 && c < 0x7f; });
  if (!path.starts_with('/') || path.size() > kMaxPathBytes || !printable || path.find_first_of("?%") != std::string_view::npos ||
      !is_plain_path(path))
    return "is no plain path that begins with '/'";
  return {};
}

bool is_plain_path(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  if (!path.starts_with('/') || path.find_first_of("\\;#") != std::string_view::npos) return false;
  std::string decoded;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const bool escaped = path[at] == '%';
    const int code = escaped ? byte_of(path.substr(at + 1, 2)) : static_cast<unsigned char>(path[at]);
    // No escape, as %u002e; or one of what some server decodes before it looks where the path leads.
    if (code < 0x20 || code == 0x7f || (escaped && std::string_view("./\\%;").contains(static_cast<char>(code)))) return false;
    decoded += static_cast<char>(code);
    if (escaped) at += 2;
  }
  if (!is_utf8(decoded)) return false;
  std::string_view left = path.substr(1);
  while (!left.empty()) {
    const std::size_t slash = std::min(left.find('/'), left.size());
    const std::string_view segment = left.substr(0, slash);
    if (segment.empty() || segment == "." || segment == "..") return false;
    left.remove_prefix(std::min(slash + 1, left.size()));
  }
  return true;
}

bool is_at_path(std::string_view target, std::string_view path) { return is_plain_path(target) && begins(target, path); }

bool is_at_path(std::string_view target, const std::vector<std::string>& paths) {
  return is_plain_path(target) && std::ranges::any_of(paths, [target](const auto& path) { return begins(target, path); });
}

std::string paths_text(const std::vector<std::string>& paths) {
  std::string out;
  for (const std::string& path : paths) out.append(out.empty() ? "" : ", ").append(path);
  return out;
}

}  // namespace caisson::egress
