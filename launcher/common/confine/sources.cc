// What a policy's grants lead to, and who could have changed that.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/plan.h"
#include "launcher/common/policy/in_force.h"

namespace caisson::confine {
namespace {

using policy::Grant;
using policy::Policy;

// Two grants that lead to one inode with different access: whichever path a program took would decide what it may do. Two mounts
// of the operator's may: each is read-only or not by itself, whoever comes.
Status check_aliases(const Policy& policy, const Sources& sources, Closed* closed) {
  std::map<std::pair<dev_t, ino_t>, const Grant*> seen;
  for (const Grant& grant : policy.grants) {
    const Source& source = sources.at(grant.source);
    if (!source.present) continue;
    const auto [it, fresh] = seen.emplace(std::pair(source.dev, source.ino), &grant);
    if (fresh || it->second->access == grant.access || (grant.mounted && it->second->mounted)) continue;
    const std::string why =
        "grants " + quote(it->second->path) + " and " + quote(grant.path) + " are one file or directory with different access";
    bool theirs = false;
    for (const Grant* one : {it->second, &grant})
      if (closed != nullptr && others_may_change(one->source)) theirs = true, closed->emplace(one->path, why);
    if (!theirs) return fail(Code::invalid_argument, why);
  }
  return {};
}

Result<Source> look_at(const std::string& path, std::uint64_t flags) {
  TRY_ASSIGN(const Fd fd, sys::openat2(AT_FDCWD, path, O_PATH | flags, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return sys_error("fstat " + quote(path));
  if ((flags & O_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
    return fail(Code::invalid_argument, quote(path) + " is neither a directory nor a regular file");
  return Source{true, S_ISDIR(st.st_mode), st.st_dev, st.st_ino};
}

}  // namespace

Result<Source> open_source(const std::string& path) { return look_at(path, 0); }

bool others_may_change(const std::string& path) {
  Fd at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t from = 1; at;) {
    const std::size_t end = std::min(path.find('/', from), path.size());
    const std::string name = path.substr(from, end - from);
    struct stat dir{}, st{};
    const bool there = ::fstatat(at.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (::fstat(at.get(), &dir) != 0 || dir.st_uid != 0) return true;
    // In a sticky directory what is root's stays root's.
    if ((dir.st_mode & 022) != 0 && !((dir.st_mode & S_ISVTX) != 0 && there && st.st_uid == 0)) return true;
    if (end == path.size() || !there) return false;
    at = Fd(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    from = end + 1;
  }
  return false;
}

Result<Sources> resolve_sources(const Policy& policy, Closed* closed) {
  Sources out;
  for (const Grant& grant : policy.grants) {
    auto source = open_source(grant.source);
    out[grant.source] = source.value_or(Source{});
    if (source || (!grant.required && source.error().code == Code::not_found)) continue;
    if (closed != nullptr && others_may_change(grant.source)) closed->emplace(grant.path, source.error().text());
    else if (grant.required || source.error().sys != ELOOP)
      return std::unexpected(std::move(source).error().wrap("grant " + quote(grant.path)));
  }
  TRY(check_aliases(policy, out, closed));
  // The kernel takes a cover away with the file below it: what is hidden must be what was covered. No source begins so.
  for (const std::string& path : policy.hide) {
    const Grant* around = policy::ruling_grant(policy.grants, path);
    if (around == nullptr) continue;
    const std::string place = around->source + path.substr(around->path.size());
    auto source = look_at(place, O_NOFOLLOW);  // a link is covered as it is; one above it is refused when it is covered
    if (!source && source.error().sys != ENOENT && source.error().sys != ENOTDIR && source.error().sys != ELOOP) {
      const std::string why = "hide " + quote(path);
      if (closed == nullptr || !others_may_change(place)) return std::unexpected(std::move(source).error().wrap(why));
      closed->emplace(around->path, why + ": " + source.error().text());  // nobody could tell later whether it is covered
    }
    out["hide " + path] = source.value_or(Source{});
  }
  return out;
}

}  // namespace caisson::confine
