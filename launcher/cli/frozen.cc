#include "launcher/cli/frozen.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <cstring>
#include <map>
#include <type_traits>
#include <vector>

#include "launcher/base/hash.h"
#include "launcher/base/sys.h"

namespace caisson::cli {
namespace {

constexpr std::uint64_t kFormat = 3;
constexpr std::size_t kMaxBytes = 4 << 20;
constexpr std::int64_t kSettledNs = 2'000'000'000;

// Values in sequence, native byte order: the file is read on the machine, and by the program, that wrote it.
class Writer {
 public:
  std::string bytes;
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }

 private:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(text.size());
    bytes += text;
  }
  template <class K, class V>
  void put(const std::pair<K, V>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class T>
    requires requires(const T& list) { list.begin(); } && (!std::is_trivially_copyable_v<T>) && (!std::same_as<T, std::string>)
  void put(const T& list) {
    put(list.size());
    for (const auto& item : list) put(item);
  }
  template <class T>
    requires requires(Writer& w, T& object) { members(w, object); }
  void put(const T& object) {
    members(*this, const_cast<T&>(object));
  }
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  [[nodiscard]] bool whole() const { return good_ && left_.empty(); }
  [[nodiscard]] bool good() const { return good_; }
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }

 private:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void get(T& value) {
    if (left_.size() < sizeof value) return fail();
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
  }
  void get(std::string& text) {
    const std::size_t size = count();
    text.assign(left_.substr(0, size));
    left_.remove_prefix(size);
  }
  template <class T>
    requires requires(T& list) { list.push_back({}); } && (!std::same_as<T, std::string>)
  void get(T& list) {
    const std::size_t size = count();
    for (std::size_t i = 0; i < size && good_; ++i) get(list.emplace_back());
  }
  template <class T>
    requires requires { typename T::key_type; }
  void get(T& list) {
    const std::size_t size = count();
    for (std::size_t i = 0; i < size && good_; ++i) {
      typename T::key_type key;
      get(key);
      if constexpr (requires { typename T::mapped_type; }) get(list[std::move(key)]);
      else list.insert(std::move(key));
    }
  }
  template <class T>
    requires requires(Reader& r, T& object) { members(r, object); }
  void get(T& object) {
    members(*this, object);
  }
  // Every item takes at least one byte: a size beyond what is left is a broken file, and allocates nothing.
  std::size_t count() {
    std::size_t size = 0;
    get(size);
    if (size > left_.size()) fail();
    return good_ ? size : 0;
  }
  void fail() {
    good_ = false;
    left_ = {};
  }
  std::string_view left_;
  bool good_ = true;
};

template <class A>
void members(A& a, policy::Grant& g) {
  a(g.path, g.source, g.access, g.execute, g.required, g.description);
}
template <class A>
void members(A& a, policy::SyscallSet& s) {
  a(s.name, s.why, s.needs, s.digest);
}
template <class A>
void members(A& a, policy::Policy& p) {
  a(p.domain, p.description, p.digest, p.min_tier, p.require, p.disable, p.weaken, p.why, p.grants, p.hide, p.files, p.links,
    p.devices, p.home, p.tmp, p.home_path, p.hostname, p.proc_shared_fallback, p.network, p.limits, p.env.set, p.env.client_deny,
    p.syscalls.allow, p.syscalls.deny, p.sets, p.umask, p.audit, p.preset, p.layers, p.exec_writable, p.system_packages);
}

// What must not have changed of a file. No padding: compared and written as bytes.
struct Stamp {
  std::uint64_t device, inode, size;
  std::int64_t mtime_ns, ctime_ns;
  std::uint32_t mode, uid;
  bool operator==(const Stamp&) const = default;
};
using Stamps = std::map<std::string, Stamp>;

bool stamp(const std::string& path, Stamp& out) {
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0) return false;
  const auto ns = [](const timespec& t) { return t.tv_sec * 1'000'000'000LL + t.tv_nsec; };
  out = {st.st_dev, st.st_ino, static_cast<std::uint64_t>(st.st_size), ns(st.st_mtim), ns(st.st_ctim), st.st_mode, st.st_uid};
  return true;
}

// FNV-1a: tells a file that a crash left torn. Against whoever can write the file no checksum would help.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string cache_directory() {
  if (const char* given = std::getenv("CAISSON_CACHE_DIR")) return given;
  if (::geteuid() == 0) return "/var/cache/caisson";
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/caisson";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') return std::string(home) + "/.cache/caisson";
  return {};
}

bool ours_alone(int fd, mode_t type) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == ::geteuid() && (st.st_mode & 022) == 0;
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
  if (directory_.empty() || policies_[0] != '/') return std::nullopt;
  const auto directory = sys::open(directory_, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!directory || !ours_alone(directory->get(), S_IFDIR)) return std::nullopt;
  const auto file = sys::openat(directory->get(), file_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file || !ours_alone(file->get(), S_IFREG)) return std::nullopt;
  const auto bytes = sys::read_fd(file->get(), kMaxBytes);
  if (!bytes || bytes->size() < sizeof(std::uint64_t)) return std::nullopt;
  const std::string_view payload(bytes->data(), bytes->size() - sizeof(std::uint64_t));
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes->data() + payload.size(), sizeof sum);
  if (sum != checksum(payload)) return std::nullopt;

  Reader reader(payload);
  std::uint64_t format = 0;
  Stamps stamps;
  Frozen frozen;
  policy::Policy policy;
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
  reader(policy, frozen.needs, frozen.filter);
  if (!reader.whole() || stamps.empty() || frozen.filter.empty()) return std::nullopt;
  frozen.policy = std::make_shared<const policy::Policy>(std::move(policy));
  return frozen;
}

void FrozenPolicies::store(const Frozen& frozen) const {
  if (directory_.empty() || policies_[0] != '/') return;
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

  Writer writer;
  writer(kFormat, stamps, *frozen.policy, frozen.needs, frozen.filter);
  writer(checksum(writer.bytes));
  (void)::mkdir(directory_.c_str(), 0700);
  const auto directory = sys::open(directory_, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!directory || !ours_alone(directory->get(), S_IFDIR)) return;
  const std::string temporary = file_ + "." + sys::random_hex(8);
  const auto file = sys::openat(directory->get(), temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) return;
  if (!sys::write_all(file->get(), writer.bytes) ||
      ::renameat(directory->get(), temporary.c_str(), directory->get(), file_.c_str()) != 0)
    (void)::unlinkat(directory->get(), temporary.c_str(), 0);
}

}  // namespace caisson::cli
