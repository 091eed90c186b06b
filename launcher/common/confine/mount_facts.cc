#include "launcher/common/confine/mount_facts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <ranges>
#include <sstream>
#include <string_view>

#include "launcher/common/base/sys.h"
#include "launcher/common/kernel/session_mounts.h"
#include "launcher/common/policy/text_checks.h"

namespace caisson::confine {
namespace {

using policy::inside;

constexpr std::size_t kMaxMountInfo = 4U << 20;  // a grant may have thousands of mounts below it

std::unexpected<Error> broken(const std::string& what, const std::string& is) {
  return fail(Code::internal, "verification failed: " + what + " is " + is);
}

// "\040": space, tab, newline and backslash are written in octal.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size()) out += text[i];
    else {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    }
  }
  return out;
}

Status check_mount(const Plan& plan, const Mounted& m) {
  if (plan.proc == Proc::shared && inside(m.point, "/proc")) return {};  // the container's own, masks and all
  const Bind* grant = governing(plan, m.point);
  const bool device = (grant != nullptr && grant->device) || m.type == "devpts";
  const char* lacks = !has(m.options, "nosuid")                           ? "nosuid"
                      : !device && !has(m.options, "nodev")               ? "nodev"
                      : m.point == "/" && !has(m.options, "ro")           ? "ro"
                      : m.point == "/dev/pts" && !has(m.of_type, kPtsMax) ? kPtsMax
                      : grant == nullptr                                  ? nullptr
                      : grant->read_only && !has(m.options, "ro")         ? "ro"
                      : !grant->execute && !has(m.options, "noexec")      ? "noexec"
                                                                          : nullptr;
  if (lacks != nullptr) return broken("mount " + quote(m.point), "not " + std::string(lacks));
  return {};
}

// Every line behind its third word: check_mount() looks at nothing before that.
std::string without_ids(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    for (int word = 0; word < 3; ++word) at = std::min(text.find(' ', at), end) + 1;
    if (at <= end) out.append(text, at, end - at + 1);
    at = end + 1;
  }
  return out;
}

// Replacing a file or directory from another mount namespace takes the mount on it away. A path that was only removed is no
// failure: nothing is there to be written, and other sessions may make and remove theirs.
Status check_protected(const std::map<std::string, bool, std::less<>>& points, const Protection& protection, pid_t pid) {
  const auto root = sys::open("/proc/" + std::to_string(pid) + "/root", O_PATH | O_DIRECTORY);
  for (const auto& [letter, paths] : protection.told)
    for (std::string_view at : paths) {
      if (letter != 'm' && letter != 'r' && letter != 'k') break;
      const std::string path(at);
      while (letter == 'k' && !at.empty() && !points.contains(at)) at = at.substr(0, at.rfind('/'));
      const auto point = points.find(at);
      if (point != points.end() && (letter == 'm' || point->second)) continue;
      const auto there =
          root ? sys::openat2(root->get(), path.substr(1), O_PATH | O_NOFOLLOW, RESOLVE_BENEATH) : std::unexpected(root.error());
      if (there || there.error().sys != ENOENT) return broken("protected " + quote(path), "not covered");
    }
  return {};
}

}  // namespace

bool has(std::string_view options, std::string_view wanted) {
  return std::ranges::any_of(std::views::split(options, ','), [&](auto one) { return std::string_view(one) == wanted; });
}

// "36 35 98:0 /source /point ro,nosuid shared:1 - ext4 /dev/sda1 rw"
std::optional<Mounted> mounted(std::string_view line) {
  Mounted m;
  bool optional_over = false;
  for (int field = 1; !line.empty(); ++field) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    if (field == 1) m.id = word;
    if (field == 3) m.device = word;
    if (field == 5) m.point = unescaped(word);
    if (field == 6) m.options = word;
    if (optional_over) return m.type = word, m.of_type = line.substr(line.rfind(' ') + 1), m;
    optional_over = field > 6 && word == "-";
  }
  return std::nullopt;
}

Result<std::string> check_mount_tree(const Plan& plan, pid_t pid, const Protection* protection, KnownMounts* known) {
  TRY_ASSIGN(const std::string text, sys::read_file("/proc/" + std::to_string(pid) + "/mountinfo", kMaxMountInfo));
  if (protection != nullptr && !protection->told.empty()) known = nullptr;  // these are the session's own
  std::string table = known != nullptr ? without_ids(text) : std::string();
  if (known != nullptr && !table.empty() && table == known->table) return known->words;
  std::map<std::string, bool, std::less<>> points;  // whether it is read-only
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto m = mounted(line);
    if (!m) return broken("a line of mountinfo", quote(line));
    TRY(check_mount(plan, *m));
    points.insert_or_assign(std::move(m->point), has(m->options, "ro"));
  }
  // What the launcher mounts itself.
  std::vector<std::string> own{"/", "/dev/pts", "/dev/shm"};
  if (plan.proc != Proc::none) own.emplace_back("/proc");
  if (plan.policy->home == policy::Scope::private_) own.push_back(plan.policy->home_path);
  if (plan.policy->tmp == policy::Scope::private_) own.emplace_back("/tmp");
  for (const std::string& path : own)
    if (!points.contains(path)) return broken(quote(path), "not mounted");
  // What is writable in something read-only may go with the directory: less is left.
  for (const Bind& bind : plan.binds)
    if (!points.contains(bind.target) && !(bind.held && bind.frozen))
      return broken((bind.held ? "directory " : "grant ") + quote(bind.target), "not mounted");
  if (protection != nullptr) TRY(check_protected(points, *protection, pid));
  std::string words = std::to_string(points.size()) + " mounts, terminals " + kPtsMax + ", " + std::to_string(plan.binds.size()) +
                      " held or granted, as planned";
  if (known != nullptr) *known = {std::move(table), words};
  return words;
}

Result<std::string> check_covers(const Plan& plan, pid_t pid, bool masks, const Protection* protection) {
  const auto root = sys::open("/proc/" + std::to_string(pid) + "/root", O_PATH | O_DIRECTORY);
  if (!root && root.error().sys == EACCES) return std::string();
  if (!root) return std::unexpected(root.error());
  std::vector<std::string> paths = plan.hide;
  if (masks && plan.proc == Proc::full) {
    paths.emplace_back(kProcMaskRoot);
    paths.insert(paths.end(), std::begin(kProcMasks), std::end(kProcMasks));
  }
  if (!masks && (!plan.protect.empty() || std::ranges::any_of(plan.binds, &Bind::held)))
    TRY(check_mount_tree(plan, pid, protection));
  std::size_t covered = 0;
  for (const std::string& path : paths) {
    // Whoever has the grant may make it, and must not be able to end others so.
    if (std::ranges::find(plan.makeable, path) != plan.makeable.end()) continue;
    const auto at = sys::openat2(root->get(), path.substr(1), O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (!at && at.error().sys == ENOENT) continue;  // nothing to hide
    if (!at) return std::unexpected(at.error());
    struct stat st{};
    struct statvfs mount{};
    if (::fstat(at->get(), &st) != 0 || ::fstatvfs(at->get(), &mount) != 0) return sys_error("stat " + quote(path));
    if ((st.st_mode & 07777) != 0 || (mount.f_flag & ST_RDONLY) == 0) return broken(quote(path), "not covered");
    ++covered;
  }
  return std::to_string(covered) + " paths covered";
}

Result<std::string> check_stdio(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  TRY_ASSIGN(const std::string stat, sys::read_file(process + "/stat", 4096));
  // After the name: state, parent, process group, POSIX session.
  int leader = 0;
  if (std::sscanf(stat.c_str() + std::min(stat.rfind(')'), stat.size() - 1), ") %*c %*d %*d %d", &leader) != 1 || leader != pid)
    return broken("the POSIX session", "that of process " + std::to_string(leader));
  for (const char* fd : {"/fd/0", "/fd/1", "/fd/2"}) {
    struct stat st{};
    if (::stat((process + fd).c_str(), &st) != 0) {
      if (errno == EACCES) return std::string();
      return sys_error("stat " + process + fd);
    }
    if (!S_ISCHR(st.st_mode) || st.st_rdev != ::makedev(1, 3)) return broken(process + fd, "not /dev/null");
  }
  return std::string("/dev/null, a POSIX session of its own");
}

}  // namespace caisson::confine
