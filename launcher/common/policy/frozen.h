// Frozen policies as bytes: what caisson-policies answers the launcher with, and what the cache of `caisson run` holds. Values in
// sequence in native byte order, because the same build of ours on the same machine writes and reads them. Any bytes at all are
// read in bounded time and memory, as a value of the types or not at all: no enumerator that does not exist, no truth value but 0
// and 1, no more items than there are bytes.
#pragma once

#include <concepts>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "launcher/common/policy/in_force.h"
#include "launcher/common/policy/rows.h"

namespace caisson::policy {

// More than sixty domains of this tree's size take; more is refused by both sides.
inline constexpr std::size_t kMaxFrozen = 16U << 20;

// The policies in these bytes, or an error. The planner (compiler/planner.h) compares each with its digest.
[[nodiscard]] Result<LoadResult> thaw(std::string_view bytes);
// What the bytes begin with: their format, and the version that wrote them. A program that was replaced while the launcher runs
// may be of another.
[[nodiscard]] std::string frozen_mark();

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
void members(A& a, SyscallSet& s) {
  a(s.name, s.why, s.needs, s.digest, s.rules);
}
template <class A>
void members(A& a, Policy& p) {
  each_row(p, [&a](const Row&, auto& value) { a(value); });
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
    requires(!std::same_as<T, bool>)
  void get(T& value) {
    if (left_.size() < sizeof value) return fail();
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
  }
  template <class T>
    requires(std::is_enum_v<T> || std::same_as<T, bool>)
  void get(T& value) {
    unsigned char byte = 0;
    get(byte);
    if (byte >= count_words(words(T{}))) return fail();
    value = static_cast<T>(byte);
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    if (there) get(value.emplace());
  }
  template <class T>
  void get(std::shared_ptr<const T>& value) {
    bool there = false;
    get(there);
    if (!there) return;
    auto made = std::make_shared<T>();
    get(*made);
    value = std::move(made);
  }
  template <class K, class V>
  void get(std::pair<K, V>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class T, std::size_t N>
  void get(T (&list)[N]) {
    for (T& item : list) get(item);
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
    static_assert(count_words(words(T{})) <= 256);
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
    put(value != nullptr);
    if (value) put(*value);
  }
  template <class T, std::size_t N>
  void put(const T (&list)[N]) {
    for (const T& item : list) put(item);
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

}  // namespace caisson::policy
