#include "launcher/compiler/text_formats.h"

#include <algorithm>
#include <ranges>

#include "launcher/common/base/result.h"
#include "launcher/common/build/mount.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kDigits = "0123456789";

bool is_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }
bool is_name(std::string_view text, std::size_t max, bool upper, std::string_view extra, bool digit_first = false) {
  if (text.empty() || text.size() > max || (!digit_first && is_of(text[0], kDigits))) return false;
  return std::ranges::all_of(
      text, [&](char c) { return is_of(c, kLower) || is_of(c, kDigits) || is_of(c, extra) || (upper && is_of(c, kUpper)); });
}

// A relative path, with nothing in it that a path_fault() with a slash before it would find.
std::optional<Fault> name_fault(std::string_view name) {
  const std::string named = quote(name, 80);
  if (name.empty()) return Fault{"name is empty", ""};
  if (name.size() > kMaxName) return Fault{"name is longer than " + std::to_string(kMaxName) + " bytes: " + named, ""};
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return Fault{"name holds a control character: " + named, ""};
  if (name[0] == '/') return Fault{"name is absolute: " + named + "; it holds at any depth", std::string(name.substr(1))};
  for (const auto part : std::views::split(name, '/'))
    if (const std::string_view p(part); p.empty() || p == "." || p == "..")
      return Fault{"name has a part that is empty, '.' or '..': " + named, ""};
  return std::nullopt;
}

}  // namespace

std::optional<Fault> form_fault(Form form, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return Fault{"text holds a NUL byte: " + quote(text), ""};
  switch (form) {
    case Form::any:
      break;
    case Form::path:
      return path_fault(text);
    case Form::source:
      if (text.starts_with(kOfHome)) return name_fault(text.substr(kOfHome.size()));
      if (!text.starts_with(kOfWorkspace)) return path_fault(text);
      for (const char* name : confine::kOfWorkspace)
        if (text.substr(kOfWorkspace.size()) == name) return std::nullopt;
      return Fault{"no such directory of a workspace: " + quote(text), "workspace:display"};
    case Form::name:
      return name_fault(text);
    case Form::domain:
      if (!is_name(text, 32, false, "-")) return Fault{"name must be a-z, 0-9 and '-', at most 32: " + quote(text), ""};
      break;
    case Form::hostname:
      if (!is_name(text, 63, true, "-", true) || text.front() == '-' || text.back() == '-')
        return Fault{"not a host name of one label: " + quote(text), ""};
      break;
    case Form::env_pattern:
      if (text.ends_with('*')) text.remove_suffix(1);
      [[fallthrough]];
    case Form::env_name:
      if (!is_name(text, 128, true, "_")) return Fault{"not the name of an environment variable: " + quote(text), ""};
      break;
    case Form::syscall:
      if (!is_name(text, 64, false, "_", false)) return Fault{"not the name of a system call: " + quote(text), ""};
      break;
    case Form::pointer:
      if (!text.starts_with('/')) return Fault{"not a field, such as '/limits/processes': " + quote(text), ""};
      break;
  }
  return std::nullopt;
}

std::vector<std::string> split(std::string_view words) {
  std::vector<std::string> out;
  for (const auto word : std::views::split(words, ' '))
    if (!word.empty()) out.emplace_back(word.begin(), word.end());
  return out;
}

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

}  // namespace caisson::policy
