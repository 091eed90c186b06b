// Buffer: bytes that grow without being held twice. realloc(3) moves the pages of a large block (mremap(2)) where std::string
// would copy them beside the old ones. Running out of memory is a value, so that one client's message cannot end the program.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace caisson::cdp {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), room_(std::exchange(other.room_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    std::free(data_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    room_ = std::exchange(other.room_, 0);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }

  // False, without a change, if memory cannot be had.
  [[nodiscard]] bool append(std::string_view bytes) {
    if (bytes.empty()) return true;
    if (bytes.size() > room_ - size_ && !grow(size_ + bytes.size())) return false;
    std::memcpy(data_ + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
    return true;
  }
  // Gives back what was reserved and not used.
  void trim() {
    if (room_ - size_ < kSlackBytes) return;
    if (void* smaller = std::realloc(data_, size_ > 0 ? size_ : 1)) {
      data_ = static_cast<char*>(smaller);
      room_ = size_;
    }
  }
  [[nodiscard]] std::string_view view() const { return {data_, size_}; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kSlackBytes = 4096;
  [[nodiscard]] bool grow(std::size_t needed) {
    const std::size_t room = needed < kSlackBytes ? needed : needed + needed / 2;
    void* larger = std::realloc(data_, room);
    if (larger == nullptr) return false;
    data_ = static_cast<char*>(larger);
    room_ = room;
    return true;
  }

  char* data_ = nullptr;
  std::size_t size_ = 0, room_ = 0;
};

}  // namespace caisson::cdp
