// Reads a log line by line, in bounded memory whatever the file holds. Used by verify, show and the CLI's follow mode:
// next() gives a line only once its newline is there, so that it may be called again when the file has grown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/audit/log.h"
#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"

namespace caisson::audit {

class Lines {
 public:
  explicit Lines(Fd fd, std::uint64_t offset = 0) : fd_(std::move(fd)), offset_(offset) {}
  [[nodiscard]] static Result<Lines> open(const std::string& path);

  struct Line {
    std::string_view text;     // without the newline; valid until the next call
    std::uint64_t number = 0;  // 1-based
    std::uint64_t offset = 0;  // of its first byte in the file
    bool whole = true;         // false: over kMaxRecord; text is its beginning, the rest is skipped
  };
  // nullopt: no further whole line for now.
  [[nodiscard]] Result<std::optional<Line>> next();
  // Bytes behind the last newline: the beginning of a record that was cut, or that is being written at this moment.
  [[nodiscard]] std::string_view rest() const { return std::string_view(buffer_).substr(used_); }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] const Fd& fd() const { return fd_; }

 private:
  Fd fd_;
  std::string buffer_;
  std::size_t used_ = 0;      // of buffer_: handed out already
  std::uint64_t offset_ = 0;  // of buffer_[used_] in the file
  std::uint64_t count_ = 0;
};

[[nodiscard]] std::optional<Event> event_from(std::string_view name);

// One line as JSON, with the bounds of a record. Says nothing about the chain.
[[nodiscard]] Result<json::Value> parse_record(std::string_view line);
// A number of a record that cannot be negative; what is absent, negative or no whole number is `fallback`.
[[nodiscard]] std::uint64_t count_of(const json::Value& record, const char* key, std::uint64_t fallback = 0);

}  // namespace caisson::audit
