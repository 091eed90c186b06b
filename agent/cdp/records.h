// Records: bytes of a stream cut at each NUL into messages, as Chromium's --remote-debugging-pipe writes them
// (content/browser/devtools/devtools_pipe_handler.cc) and as clients of caisson-cdp do. However the bytes were cut before, the
// same messages come out. Of a message that is longer than the limit only the first and last bytes are kept: they tell its
// receiver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "agent/cdp/buffer.h"

namespace caisson::cdp {

inline constexpr std::size_t kMaxMessageBytes = 256u * 1024 * 1024;

class Records {
 public:
  explicit Records(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  enum class Got { more, message, too_long, no_memory };
  // Takes from `bytes` up to the end of the next message. `more`: all of them are taken, and the message is not at its end.
  // `too_long` and `no_memory`: at the end of a message that was not kept.
  [[nodiscard]] Got take(std::string_view& bytes) {
    const std::size_t end = bytes.find('\0');
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (lost_ == Got::more && part.size() > max_bytes_ - held_.size()) lose(Got::too_long, part);
    if (lost_ == Got::more && !held_.append(part)) lose(Got::no_memory, part);
    if (lost_ != Got::more) keep_tail(part);
    if (end == std::string_view::npos) return Got::more;
    if (lost_ != Got::more) return std::exchange(lost_, Got::more);
    held_.trim();
    return Got::message;
  }

  // The message that take() found, without its NUL.
  [[nodiscard]] Buffer message() { return std::exchange(held_, Buffer()); }
  [[nodiscard]] std::size_t held_bytes() const { return held_.size(); }
  // Whether what comes now will not be kept.
  [[nodiscard]] bool losing() const { return lost_ != Got::more; }
  // The beginning and the end of the last message that was not kept, kEdgeBytes each.
  [[nodiscard]] const std::string& head() const { return head_; }
  [[nodiscard]] const std::string& tail() const { return tail_; }

 private:
  static constexpr std::size_t kEdgeBytes = 256;
  void lose(Got why, std::string_view part) {
    lost_ = why;
    head_ = held_.view().substr(0, kEdgeBytes);
    head_.append(part.substr(0, kEdgeBytes - head_.size()));
    tail_.clear();
    keep_tail(held_.view());
    held_ = Buffer();
  }
  void keep_tail(std::string_view part) {
    tail_.append(part.substr(part.size() - std::min(part.size(), kEdgeBytes)));
    if (tail_.size() > kEdgeBytes) tail_.erase(0, tail_.size() - kEdgeBytes);
  }

  std::size_t max_bytes_;
  Buffer held_;
  Got lost_ = Got::more;
  std::string head_, tail_;
};

}  // namespace caisson::cdp
