#include "launcher/policy/words.h"

#include <algorithm>

#include "launcher/base/result.h"

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

}  // namespace

std::optional<Fault> form_fault(Form form, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return Fault{"text holds a NUL byte: " + quote(text), ""};
  switch (form) {
    case Form::any:
      break;
    case Form::path:
      return path_fault(text);
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

std::string canonical(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = end + 1;
  }
  std::string out;
  for (const std::string_view part : parts) out.append("/").append(part);
  return out.empty() ? "/" : out;
}

bool inside(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = 1 + std::max<std::size_t>(1, word.size() / 3);  // further off, a hint misleads
  if (word.size() > 64) return best;
  for (const std::string& candidate : candidates) {
    // Optimal string alignment: insert, delete, replace, swap of neighbours.
    std::vector<std::vector<std::size_t>> d(word.size() + 1, std::vector<std::size_t>(candidate.size() + 1));
    for (std::size_t i = 0; i <= word.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= candidate.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i)
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const bool same = word[i - 1] == candidate[j - 1];
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1])
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    if (const std::size_t distance = d[word.size()][candidate.size()]; distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::vector<std::string> split(std::string_view words) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (end > at) out.emplace_back(words.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace caisson::policy
