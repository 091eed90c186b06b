#include "launcher/cli/frozen.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "launcher/common/base/hash.h"
#include "launcher/common/base/sys.h"
#include "launcher/compiler/frozen_write.h"

namespace caisson::cli {
namespace {

constexpr std::uint64_t kFormat = 5;
constexpr std::size_t kMaxBytes = 4 << 20;
constexpr std::int64_t kSettledNs = 2'000'000'000;

// What must not have changed of a file.
struct Stamp {
  std::uint64_t device, inode, size;
  std::int64_t mtime_ns, ctime_ns;
  std::uint32_t mode, uid;
  bool operator==(const Stamp&) const = default;
};
template <class A>
void members(A& a, Stamp& s) {
  a(s.device, s.inode, s.size, s.mtime_ns, s.ctime_ns, s.mode, s.uid);
}
using Stamps = std::map<std::string, Stamp>;

bool stamp(const std::string& path, Stamp& out) {
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0) return false;
  const auto ns = [](const timespec& t) { return t.tv_sec * 1'000'000'000LL + t.tv_nsec; };
  out = {st.st_dev, st.st_ino, static_cast<std::uint64_t>(st.st_size), ns(st.st_mtim), ns(st.st_ctim), st.st_mode, st.st_uid};
  return true;
}

// FNV-1a: tells a file that a crash left torn. Against whoever can write the file no checksum would help: open_cache() does.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string cache_directory() {
  const char* given = std::getenv("CAISSON_CACHE_DIR");
  return given != nullptr ? given : "/var/cache/caisson";
}

bool roots_alone(int fd, mode_t type, bool sticky_too = false) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == 0 &&
         ((st.st_mode & 022) == 0 || (sticky_too && (st.st_mode & S_ISVTX) != 0));
}

// Root's sessions have another uid. Any other caller's sessions have the caller's own, and root of a user namespace is an
// ordinary user outside: such sessions can write whatever a policy grants them of the caller's files.
bool sessions_are_others() {
  std::uint64_t inside = 1, outside = 1, count = 0;
  const std::string map = sys::read_file("/proc/self/uid_map", 4096).value_or("");
  return ::geteuid() == 0 && std::sscanf(map.c_str(), "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 &&
         outside == 0 && count == 0xffffffff;
}

// Step by step without following a link: what another uid could rename on the way could be another directory of root's. In a
// sticky directory nobody moves what is root's.
std::optional<Fd> open_cache(const std::string& path, bool make) {
  if (path.empty() || path[0] != '/' || !sessions_are_others()) return std::nullopt;
  auto at = sys::open("/", O_PATH | O_DIRECTORY);
  for (std::size_t from = 1; at && from < path.size();) {
    const std::size_t to = std::min(path.find('/', from), path.size());
    const std::string name = path.substr(from, to - from);
    from = to + 1;
    if (name.empty()) continue;
    if (!roots_alone(at->get(), S_IFDIR, true)) return std::nullopt;
    if (make && from >= path.size()) (void)::mkdirat(at->get(), name.c_str(), 0700);
    at = sys::openat(at->get(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  }
  if (!at || !roots_alone(at->get(), S_IFDIR)) return std::nullopt;
  return std::move(*at);
}

}  // namespace

std::set<Mechanism> filter_needs(const policy::Policy& policy, const std::set<Mechanism>& enforced) {
  std::set<Mechanism> out;
  for (const policy::SyscallSet& set : policy.sets)
    if (set.needs && enforced.contains(*set.needs)) out.insert(*set.needs);
  return out;
}

FrozenPolicies::FrozenPolicies(std::string policies, const policy::Choice& choice)
    : policies_(std::move(policies)),
      directory_(cache_directory()),
      file_(sha256_hex(policies_ + '\0' + choice.only + '\0' + choice.preset).substr(0, 32)) {}

std::optional<Frozen> FrozenPolicies::load() const {
  if (policies_[0] != '/') return std::nullopt;
  const auto directory = open_cache(directory_, false);
  if (!directory) return std::nullopt;
  const auto file = sys::openat(directory->get(), file_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file || !roots_alone(file->get(), S_IFREG)) return std::nullopt;
  const auto bytes = sys::read_fd(file->get(), kMaxBytes);
  if (!bytes || bytes->size() < sizeof(std::uint64_t)) return std::nullopt;
  const std::string_view payload(bytes->data(), bytes->size() - sizeof(std::uint64_t));
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes->data() + payload.size(), sizeof sum);
  if (sum != checksum(payload)) return std::nullopt;

  policy::Reader reader(payload);
  std::uint64_t format = 0;
  Stamps stamps;
  Frozen frozen;
  policy::Policy policy;
  std::string filter;
  reader(format);
  if (format != kFormat) return std::nullopt;
  reader(stamps);
  for (const auto& [path, then] : stamps)
    if (Stamp now{}; !reader.good() || !stamp(path, now) || now != then) return std::nullopt;
  // By this very program: another one on this machine may compile other filters of the same files.
  struct stat self{};
  if (::stat("/proc/self/exe", &self) != 0 || std::ranges::none_of(stamps, [&self](const auto& entry) {
        return entry.second.device == self.st_dev && entry.second.inode == self.st_ino;
      }))
    return std::nullopt;
  reader(policy, frozen.needs, filter);
  if (!reader.whole() || stamps.empty() || filter.empty() || filter.size() % sizeof(sock_filter) != 0) return std::nullopt;
  frozen.filter.resize(filter.size() / sizeof(sock_filter));
  std::memcpy(frozen.filter.data(), filter.data(), filter.size());
  frozen.policy = std::make_shared<const policy::Policy>(std::move(policy));
  return frozen;
}

void FrozenPolicies::store(const Frozen& frozen) const {
  if (policies_[0] != '/') return;
  const auto directory = open_cache(directory_, true);
  if (!directory) return;
  std::vector<std::string> paths{"/proc/self/exe", policies_, policies_ + "/seccomp"};
  for (const std::string& file : frozen.policy->layers) paths.push_back(policies_ + "/" + file);
  if (!frozen.policy->preset.empty()) paths.push_back(policies_ + "/presets");
  char self[4096];
  const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self);
  if (n <= 0) return;
  paths[0].assign(self, static_cast<std::size_t>(n));
  for (const policy::SyscallSet& set : frozen.policy->sets) paths.push_back(policies_ + "/seccomp/" + set.name + ".json");
  Stamps stamps;
  const std::int64_t now = sys::realtime_ns();
  for (const std::string& path : paths)
    if (!stamp(path, stamps[path]) || now - stamps[path].ctime_ns < kSettledNs) return;

  policy::Policy bare = *frozen.policy;
  for (policy::SyscallSet& set : bare.sets) set = {.name = set.name, .why = set.why, .needs = set.needs, .digest = set.digest};
  const std::string filter(reinterpret_cast<const char*>(frozen.filter.data()), frozen.filter.size() * sizeof(sock_filter));
  policy::Writer writer;
  writer(kFormat, stamps, bare, frozen.needs, filter);
  writer(checksum(writer.bytes));
  const std::string temporary = file_ + "." + sys::random_hex(8);
  const auto file = sys::openat(directory->get(), temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) return;
  if (!sys::write_all(file->get(), writer.bytes) ||
      ::renameat(directory->get(), temporary.c_str(), directory->get(), file_.c_str()) != 0)
    (void)::unlinkat(directory->get(), temporary.c_str(), 0);
}

}  // namespace caisson::cli
