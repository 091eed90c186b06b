#include "launcher/compiler/volumes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <ranges>

#include "launcher/common/base/result.h"
#include "launcher/common/confine/mount_facts.h"
#include "launcher/common/policy/in_force.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/text_formats.h"

namespace caisson::confine {
namespace {

constexpr std::size_t kMaxPlaces = 32;
// The engine mounts there, too (/etc/hosts, /run/secrets), or sessions see something else by that name.
constexpr std::string_view kContainers[] = {"/bin",  "/caisson", "/dev",   "/etc",    "/home/workspaces",
                                            "/lib",  "/lib32",   "/lib64", "/libx32", "/proc",
                                            "/root", "/run",     "/sbin",  "/sys",    "/tmp",
                                            "/usr",  "/var"};
constexpr std::string_view kKernels[] = {"autofs", "binfmt_misc", "bpf",        "cgroup",    "cgroup2", "configfs", "debugfs",
                                         "devpts", "devtmpfs",    "efivarfs",   "fusectl",   "mqueue",  "nsfs",     "proc",
                                         "pstore", "rpc_pipefs",  "securityfs", "selinuxfs", "sysfs",   "tracefs"};

struct Listed {
  std::string path;
  bool below = false;  // only what lies below it
};

bool overlap(std::string_view a, std::string_view b) { return policy::inside(a, b) || policy::inside(b, a); }

Result<std::vector<Listed>> places_of(const std::string& list) {
  std::vector<Listed> out;
  if (list.empty()) return out;
  for (const auto part : std::views::split(std::string_view(list), ':')) {
    const std::string_view word(part);
    const bool below = word.ends_with("/*");
    Listed place{std::string(word.substr(0, word.size() - (below ? 2 : 0))), below};
    const auto wrong = [&word](const std::string& why) {
      return fail(Code::invalid_argument,
                  "CAISSON_MOUNTS " + quote(word) + ": " + why + "; it is a list such as /mnt/*:/workspace, or empty");
    };
    if (const auto fault = policy::path_fault(place.path)) return wrong(fault->what);
    if (place.path.contains('*')) return wrong("'*' stands for all names, and at the end alone");
    if (const auto own = std::ranges::find_if(kContainers, [&](auto c) { return overlap(place.path, c); });
        own != std::end(kContainers))
      return wrong(quote(*own) + " is the container's own: what is mounted there is granted by a policy, or not at all");
    if (out.size() == kMaxPlaces) return wrong("more than " + std::to_string(kMaxPlaces) + " places");
    out.push_back(std::move(place));
  }
  return out;
}

template <class List>
bool among(const List& list, std::string_view wanted) {
  return std::ranges::find(list, wanted) != std::end(list);
}

}  // namespace

Result<std::vector<Volume>> listed_volumes(const Volumes& from) {
  TRY_ASSIGN(const std::vector<Listed> places, places_of(from.places));
  std::vector<Volume> out;
  if (places.empty()) return out;
  std::string_view root;  // the device of the container's own files, where these are an overlay of its image
  for (const auto line : std::views::split(std::string_view(from.table), '\n'))
    if (const auto m = mounted(std::string_view(line)); m && m->point == "/") root = m->type == "overlay" ? m->device : "";
  for (const auto line : std::views::split(std::string_view(from.table), '\n')) {
    const auto m = mounted(std::string_view(line));
    if (!m || policy::path_fault(m->point) || among(kKernels, m->type) || m->device == root) continue;
    if (std::ranges::none_of(
            places, [&](const Listed& p) { return policy::inside(m->point, p.path) && !(p.below && m->point == p.path); }))
      continue;
    if (std::ranges::any_of(from.own, [&](const std::string& own) { return !own.empty() && overlap(m->point, own); })) continue;
    Volume volume{
        .path = m->point, .read_only = has(m->options, "ro") || has(m->of_type, "ro"), .execute = !has(m->options, "noexec")};
    std::from_chars(m->id.data(), m->id.data() + m->id.size(), volume.id);
    out.push_back(std::move(volume));
  }
  return out;
}

Result<std::vector<policy::Grant>> volume_grants(const Volumes& from) {
  TRY_ASSIGN(const std::vector<Volume> listed, listed_volumes(from));
  std::vector<policy::Grant> out;
  for (const Volume& v : listed) {
    // A later mount may cover this one: the path must lead to it now. The table has real paths, so no link is on the way.
    struct statx st{};
    constexpr unsigned kWanted = STATX_TYPE | STATX_MODE | STATX_UID | STATX_MNT_ID;
    if (::statx(AT_FDCWD, v.path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, kWanted, &st) != 0 ||
        ((st.stx_mask & STATX_MNT_ID) != 0 && st.stx_mnt_id != v.id) || (!S_ISDIR(st.stx_mode) && !S_ISREG(st.stx_mode)))
      continue;
    if (out.size() == kMaxVolumes)
      return fail(Code::limit,
                  "CAISSON_MOUNTS: more than " + std::to_string(kMaxVolumes) + " mounts lie there: name fewer places");
    std::string what = "mounted by the operator (CAISSON_MOUNTS)";
    if (!v.read_only)  // nobody changes owners for them: who wonders why a session cannot write reads it here
      what += "; of uid " + std::to_string(st.stx_uid) + ", mode " + policy::octal_text(st.stx_mode);
    out.push_back({.path = v.path,
                   .source = v.path,
                   .access = v.read_only ? policy::Access::read : policy::Access::read_write,
                   .execute = v.execute,
                   .required = false,
                   .mounted = true,
                   .description = what});
  }
  return out;
}

}  // namespace caisson::confine
