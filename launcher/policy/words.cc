#include "launcher/policy/words.h"

#include <algorithm>

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

}  // namespace caisson::policy
