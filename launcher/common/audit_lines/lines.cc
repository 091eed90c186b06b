#include "launcher/common/audit_lines/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include "launcher/common/audit/log.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::audit {

Result<Lines> Lines::open(const std::string& path) {
  // O_NONBLOCK: a FIFO in the log's place must not hang us.
  TRY_ASSIGN(Fd fd, sys::open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK));
  return Lines(std::move(fd));
}

Result<std::optional<Lines::Line>> Lines::next() {
  Line line;
  std::size_t searched = used_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      if (line.whole) {
        line.offset = offset_;
        line.text = std::string_view(buffer_).substr(used_, end - used_);
      }
      offset_ += end + 1 - used_;
      used_ = end + 1;
      line.number = ++count_;
      line.whole = line.whole && line.text.size() < kMaxRecord;
      return line;
    }
    if (line.whole && buffer_.size() - used_ >= 2 * kMaxRecord) {
      line.whole = false;
      line.offset = offset_;
    }
    if (!line.whole) {  // drop what is known to be too long; only its end still matters
      offset_ += buffer_.size() - used_;
      used_ = buffer_.size();
    }
    buffer_.erase(0, used_);
    used_ = 0;
    searched = buffer_.size();
    char chunk[32 * 1024];
    ssize_t n;
    do n = ::read(fd_.get(), chunk, sizeof chunk);
    while (n < 0 && errno == EINTR);
    if (n < 0) return sys_error("read audit log");
    if (n == 0) return std::nullopt;
    buffer_.append(chunk, static_cast<std::size_t>(n));
  }
}

std::optional<Event> event_from(std::string_view name) {
  for (int i = 0; i < count_words(kEventNames); ++i)
    if (event_name(static_cast<Event>(i)) == name) return static_cast<Event>(i);
  return std::nullopt;
}

Result<json::Value> parse_record(std::string_view line) {
  TRY_ASSIGN(json::Value record, json::parse(line, {.max_bytes = kMaxRecord, .max_depth = 64, .max_values = kMaxRecord}));
  if (!record.is_object()) return fail(Code::invalid_argument, "not an object");
  return record;
}

std::uint64_t count_of(const json::Value& record, const char* key, std::uint64_t fallback) {
  const auto value = json::number_of(record, key);
  return value && *value >= 0 ? static_cast<std::uint64_t>(*value) : fallback;
}

}  // namespace caisson::audit
