#include "launcher/policy/text_checks.h"

#include <algorithm>
#include <ranges>

#include "launcher/base/result.h"

namespace caisson::policy {

std::optional<Fault> path_fault(std::string_view path) {
  const std::string named = quote(path);
  if (path.empty()) return Fault{"path is empty", ""};
  if (path.size() > kMaxPath) return Fault{"path is longer than 4095 bytes: " + quote(path, 40), ""};
  for (const char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return Fault{"path holds a control character: " + named, ""};
  if (path[0] != '/') {
    const std::string rooted = canonical("/" + std::string(path));
    return Fault{"path is not absolute: " + named, path[0] == '~' || rooted == "/" ? "" : rooted};
  }
  const std::string clean = canonical(path);
  if (clean == "/") return Fault{"path is the root: " + named + " would show everything; name what is needed", ""};
  if (clean != path) return Fault{"path is not canonical: " + named, clean};
  return std::nullopt;
}

std::string canonical(std::string_view path) {
  std::vector<std::string_view> parts;
  for (const auto name : std::views::split(path, '/')) {
    const std::string_view part(name);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  std::string out;
  for (const std::string_view part : parts) out.append("/").append(part);
  return out.empty() ? "/" : out;
}

bool inside(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

}  // namespace caisson::policy
