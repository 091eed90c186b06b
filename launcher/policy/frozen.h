// Frozen policies as bytes: what caisson-policies answers the launcher with, and what the cache of `caisson run` holds. Values in
// sequence in native byte order, because the same build of ours on the same machine writes and reads them; frozen_write.h has
// the other direction, which is no part of the launcher. Any bytes at all are read in bounded time and memory, as a value
// of the types or not at all: no enumerator that does not exist, no truth value but 0 and 1, no more items than there are bytes.
#pragma once

#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "launcher/policy/in_force.h"

namespace caisson::policy {

// More than sixty domains of this tree's size take; more is refused by both sides.
inline constexpr std::size_t kMaxFrozen = 16U << 20;

// What these bytes say, whole and with every policy being what its digest says, or an error.
[[nodiscard]] Result<LoadResult> thaw(std::string_view bytes);
// What the bytes begin with: their format, and the version that wrote them. A program that was replaced while the launcher runs
// may be of another.
[[nodiscard]] std::string frozen_mark();

// The last enumerator of each.
constexpr auto last(Tier) { return Tier::t3; }
constexpr auto last(Mechanism) { return Mechanism::denial_audit; }
constexpr auto last(Access) { return Access::read_write; }
constexpr auto last(Scope) { return Scope::private_; }
constexpr auto last(Network) { return Network::none; }
constexpr auto last(OnFull) { return OnFull::stderr_; }

// The members of each type in their order, for Reader and Writer.
template <class A>
void members(A& a, Problem& p) {
  a(p.file, p.line, p.pointer, p.what, p.meant);
}
template <class A>
void members(A& a, Grant& g) {
  a(g.path, g.source, g.access, g.execute, g.required, g.mounted, g.description);
}
template <class A>
void members(A& a, Limits& l) {
  for (const LimitRow& row : kLimits) a(l.*row.member);
}
template <class A>
void members(A& a, Audit& r) {
  a(r.denials, r.paths, r.max_bytes, r.keep_days, r.on_full);
}
template <class A>
void members(A& a, SyscallSet& s) {
  a(s.name, s.why, s.needs, s.digest, s.rules);
}
template <class A>
void members(A& a, Policy& p) {
  a(p.domain, p.description, p.digest, p.min_tier, p.require, p.disable, p.weaken, p.why, p.grants, p.hide, p.files, p.links,
    p.devices, p.home, p.tmp, p.home_path, p.hostname, p.proc_shared_fallback, p.network, p.limits, p.env.set, p.env.client_deny,
    p.syscalls.allow, p.syscalls.deny, p.sets, p.umask, p.audit, p.preset, p.layers, p.exec_writable, p.system_packages,
    p.protect, p.protect_home);
}

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
  template <std::integral T>
  void get(T& value) {
    if (left_.size() < sizeof value) return fail();
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
  }
  void get(bool& value) {
    unsigned char byte = 0;
    get(byte);
    if (byte > 1) return fail();
    value = byte == 1;
  }
  template <class T>
    requires std::is_enum_v<T>
  void get(T& value) {
    unsigned char byte = 0;
    get(byte);
    if (byte > static_cast<int>(last(T{}))) return fail();
    value = static_cast<T>(byte);
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    if (there) get(value.emplace());
  }
  void get(std::string& text) {
    const std::size_t size = count();
    text.assign(left_.substr(0, size));
    left_.remove_prefix(size);
  }
  template <class T>
  void get(std::vector<T>& list) {
    const std::size_t size = count();
    for (std::size_t i = 0; i < size && good_; ++i) get(list.emplace_back());
  }
  template <class T>
    requires requires { typename T::key_type; }
  void get(T& list) {
    const std::size_t size = count();
    for (std::size_t i = 0; i < size && good_; ++i) {
      typename T::key_type key{};
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
  // Every item takes at least one byte: a size beyond what is left is broken, and allocates nothing.
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

}  // namespace caisson::policy
