// The other direction of frozen.h, and the rules of system calls in both: for caisson-policies and the cache of `caisson run`, no
// part of the launcher.
#pragma once

#include "launcher/policy/frozen.h"

namespace caisson::policy {

template <class A>
void members(A& a, ArgRule& r) {
  a(r.index, r.op, r.value, r.mask);
}
template <class A>
void members(A& a, SyscallRule& r) {
  a(r.name, r.any_of, r.refuse_if, r.why);
}
template <class A>
void members(A& a, Pretence& p) {
  a(p.name, p.error, p.when);
}

class Writer {
 public:
  std::string bytes;
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }

 private:
  template <std::integral T>
  void put(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(bool value) { bytes.push_back(value ? 1 : 0); }
  template <class T>
    requires std::is_enum_v<T>
  void put(const T& value) {
    static_assert(static_cast<int>(last(T{})) < 256);
    bytes.push_back(static_cast<char>(value));
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
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
  void put(const std::shared_ptr<T>& value) {
    put(*value);
  }
  template <class T>
    requires requires(const T& list) { list.begin(); } && (!std::same_as<T, std::string>)
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

// What thaw() reads. `base` stays behind: no session runs under it.
[[nodiscard]] inline std::string freeze(const LoadResult& loaded) {
  std::map<std::string, Policy> policies;
  for (const auto& [domain, policy] : loaded.policies)
    for (SyscallSet& set : (policies[domain] = *policy).sets)
      if (set.rules.empty()) {
        Writer rules;
        rules(set.allow, set.refuse, set.refuse_why, set.pretend);
        set.rules = std::move(rules.bytes);
      }
  Writer writer;
  writer(frozen_mark(), loaded.problems, policies);
  return std::move(writer.bytes);
}

// The rules of a set that was frozen; false: these bytes are none.
[[nodiscard]] inline bool thaw_rules(SyscallSet& set) {
  Reader reader(set.rules);
  reader(set.allow, set.refuse, set.refuse_why, set.pretend);
  return reader.whole();
}

}  // namespace caisson::policy
