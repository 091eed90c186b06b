// The builder's end of a plan's bytes (build_plan.h).
#pragma once

#include "launcher/common/wire/build_plan.h"

namespace caisson::builder {

// Reads what an Encoder wrote. Strings stay where they are, lists take room at `arena`, which must have kRoom times the size of
// the bytes. ok() is false for bytes that end early or hold more than they say.
class Decoder {
 public:
  static constexpr std::size_t kRoom = 8;  // the shortest element, a string of no letters, takes 5 bytes, and 8 as a pointer
  Decoder(const char* at, std::size_t size, char* arena) : at_(at), left_(size), arena_(arena) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  [[nodiscard]] bool ok() const { return ok_ && left_ == 0; }

 private:
  const char* take(std::size_t size) {
    if (!ok_ || size > left_) return ok_ = false, nullptr;
    left_ -= size;
    at_ += size;
    return at_ - size;
  }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, const char*>) {
      std::uint32_t size = 0;
      get(size);
      const char* text = take(std::size_t{size} + 1);
      value = text != nullptr && text[size] == '\0' ? text : "";
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      if (const char* from = take(sizeof value); from != nullptr) std::memcpy(&value, from, sizeof value);
    } else if constexpr (requires { value.first; }) {
      std::uint32_t size = 0;
      get(size);
      if (size > left_) ok_ = false;  // each element takes a byte at least: the arena has room for all
      using Item = std::remove_cvref_t<decltype(value[0])>;
      auto* items = reinterpret_cast<Item*>(arena_);
      arena_ += ok_ ? (size * sizeof(Item) + 7) / 8 * 8 : 0;
      for (std::uint32_t i = 0; i < size && ok_; ++i) {
        items[i] = Item{};
        get(items[i]);
      }
      value = {items, ok_ ? size : 0};
    } else {
      members(*this, value);
    }
  }
  const char* at_;
  std::size_t left_;
  char* arena_;
  bool ok_ = true;
};

}  // namespace caisson::builder
