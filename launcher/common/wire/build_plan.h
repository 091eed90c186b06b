// What the builder carries out: plain values, strings and lists that somebody else holds. The launcher makes it from a Plan and
// sends it as bytes; `caisson run` hands it to its child as it is. The members stand once, in members(), for both ends.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace caisson::builder {

template <class T>
struct List {
  const T* first = nullptr;
  std::uint32_t size = 0;
  [[nodiscard]] const T* begin() const { return first; }
  [[nodiscard]] const T* end() const { return first + size; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return first[i]; }
  [[nodiscard]] bool empty() const { return size == 0; }
};

inline constexpr std::size_t kMaxBinds = 256;

enum class Proc : std::uint32_t { none, shared, subset, full };
constexpr std::string_view words(Proc) { return "none shared subset full"; }

struct Bind {
  const char *target = "", *source = "";
  std::uint64_t dev = 0, ino = 0;
  bool read_only = true, execute = false, device = false, directory = true, staged = false, held = false, frozen = false;
};
struct File {  // or a symbolic link, whose content is its target
  const char *path = "", *content = "";
};
struct Rule {
  const char* path = "";
  std::uint64_t access = 0;
  bool required = true;
};
struct Limit {
  std::int32_t resource = 0;
  std::uint64_t soft = 0, hard = 0;
};

struct BuildPlan {
  bool user_ns = false, mount_ns = false, pid_ns = false, ipc_ns = false, uts_ns = false, net_ns = false, cgroup_ns = false;
  bool change_uid = false, nested = false;  // nested: its programs make user namespaces of their own
  bool root_ns = false;                     // one more user namespace, in which the session is root (system_packages)
  bool audited = false, connected = false;  // its filter has a listener: for the auditor; for a connector, and through it
  bool private_home = false, private_tmp = false, exec_writable = false;
  Proc proc = Proc::none;
  std::uint32_t umask = 022;
  std::uint64_t landlock_fs = 0, landlock_scoped = 0;
  const char *hostname = "", *home = "", *tmp_options = "", *home_options = "";
  List<Bind> binds;  // parents before children
  List<const char*> directories, hide;
  List<File> files, links;
  List<Rule> landlock;
  List<Limit> limits;
  List<sock_filter> filter;
};

template <class V>
void members(V& v, Bind& b) {
  v(b.target, b.source, b.dev, b.ino, b.read_only, b.execute, b.device, b.directory, b.staged, b.held, b.frozen);
}
template <class V>
void members(V& v, File& f) {
  v(f.path, f.content);
}
template <class V>
void members(V& v, Rule& r) {
  v(r.path, r.access, r.required);
}
template <class V>
void members(V& v, Limit& l) {
  v(l.resource, l.soft, l.hard);
}
template <class V>
void members(V& v, sock_filter& f) {
  v(f.code, f.jt, f.jf, f.k);
}
template <class V>
void members(V& v, BuildPlan& p) {
  v(p.user_ns, p.mount_ns, p.pid_ns, p.ipc_ns, p.uts_ns, p.net_ns, p.cgroup_ns, p.change_uid, p.nested, p.root_ns, p.audited,
    p.connected, p.private_home, p.private_tmp, p.exec_writable, p.proc, p.umask, p.landlock_fs, p.landlock_scoped, p.hostname,
    p.home, p.tmp_options, p.home_options, p.binds, p.directories, p.hide, p.files, p.links, p.landlock, p.limits, p.filter);
}

// Numbers as they lie in memory; a string with its length and a NUL; a list with its length.
class Encoder {
 public:
  template <class... T>
  void operator()(T&... values) {
    (put(values), ...);
  }
  std::string bytes;

 private:
  template <class T>
  void put(T& value) {
    if constexpr (std::is_same_v<T, const char*>) {
      const auto size = static_cast<std::uint32_t>(std::strlen(value));
      put(size);
      bytes.append(value, size + 1);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else if constexpr (requires { value.first; }) {
      put(value.size);
      for (auto item : value) put(item);
    } else {
      members(*this, value);
    }
  }
};

}  // namespace caisson::builder
