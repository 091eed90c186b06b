#include "launcher/auditor/view.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <ranges>

namespace caisson::auditor {
namespace {

constexpr int kMostLinks = 16;

constexpr Denied kOutside{"ENOENT", "outside of every grant"};
constexpr Denied kNoPlace{"EROFS", "no grant covers this place"};
constexpr Denied kHidden{"EACCES", "hidden by the policy"};
constexpr Denied kReadOnly{"EROFS", "granted for reading only"};
constexpr Denied kNotWritten{"EACCES", "not to be written in any session"};
constexpr Denied kNotExecuted{"EACCES", "granted without execution"};

std::string_view parent(std::string_view path) { return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)); }

// The next of NUL-terminated texts; false at the end.
bool next(std::string_view& text, std::string_view& out) {
  const std::size_t end = text.find('\0');
  if (end == std::string_view::npos) return false;
  out = text.substr(0, end);
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace

View View::parse(std::string_view text) {
  View out;
  std::string_view letters, path, target;
  while (next(text, letters) && next(text, path)) {
    if (letters == "=") {
      if (next(text, target)) out.links_.emplace(path, target);
      continue;
    }
    const auto has = [&](char letter) { return letters.find(letter) != std::string_view::npos; };
    out.places_[std::string(path)] = {has('w'), has('x'), has('h'), has('l')};
  }
  return out;
}

std::string View::normal(std::string_view path, std::string_view base) const {
  // What is still to be walked, the next name last; a link puts its target's names on top.
  std::vector<std::string> left;
  const auto push = [&left](std::string_view names) {
    const std::size_t below = left.size();
    for (const auto name : std::views::split(names, '/'))
      if (!name.empty()) left.emplace_back(name.begin(), name.end());
    std::reverse(left.begin() + static_cast<std::ptrdiff_t>(below), left.end());
  };
  push(path);
  if (!path.starts_with('/')) push(base);
  std::string out;
  for (int links = 0; !left.empty();) {
    const std::string name = std::move(left.back());
    left.pop_back();
    if (name == ".") continue;
    if (name == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
      continue;
    }
    const std::size_t before = out.size();
    out.append("/").append(name);
    const auto link = links_.find(out);
    if (link == links_.end() || ++links > kMostLinks) continue;
    out.resize(link->second.starts_with('/') ? 0 : before);
    push(link->second);
  }
  return out.empty() ? "/" : out;
}

const Denied* View::judge(Want want, const std::string& path) const {
  const Place* place = nullptr;
  bool exactly = true;  // the place itself, and not something below it
  for (std::string_view at = path;; at = parent(at), exactly = false) {
    if (const auto it = places_.find(at); it != places_.end()) {
      place = &it->second;
      break;
    }
    if (at == "/") break;
  }
  const bool writes = want == Want::create || want == Want::remove || want == Want::change;
  if (place == nullptr) {
    // Directories that hold what is granted below them are there, and nothing else is in them.
    const auto is_made = [this](std::string_view directory) {
      const std::string below = directory == "/" ? "/" : std::string(directory) + "/";
      const auto it = places_.lower_bound(below);
      return it != places_.end() && it->first.starts_with(below);
    };
    if (is_made(path)) return nullptr;
    return want == Want::create && is_made(parent(path)) ? &kNoPlace : &kOutside;
  }
  if (place->hidden) return exactly && want == Want::look ? nullptr : &kHidden;
  // To make what is there already is answered EEXIST, whatever else.
  if (writes && !place->write && !(exactly && want == Want::create)) return place->by_landlock ? &kNotWritten : &kReadOnly;
  return want == Want::execute && !place->execute ? &kNotExecuted : nullptr;
}

Want wanted(Want want, std::uint64_t flags) {
  if (want == Want::open) {
    if ((flags & O_PATH) == O_PATH) return Want::look;
    if ((flags & O_TMPFILE) == O_TMPFILE || (flags & O_CREAT) != 0) return Want::create;
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0 ? Want::change : Want::look;
  }
  if (want == Want::access) return (flags & W_OK) != 0 ? Want::change : Want::look;
  return want;
}

}  // namespace caisson::auditor
