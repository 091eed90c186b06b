// The confinement log of one session: NDJSON, one record a line, numbered and hash-chained, appended by the launcher
// alone. Format, segments and verification: launcher/common/audit/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/audit/events.h"
#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"

namespace caisson::audit {

// Longest record, its newline included. Longer ones are cut (redact.h: fit), never refused: what a session asks for
// must not decide whether it is recorded.
inline constexpr std::size_t kMaxRecord = 64 * 1024;

// "prev" of the first record.
inline constexpr std::string_view kNoPrevious = "0000000000000000000000000000000000000000000000000000000000000000";

// The room of a log, and what happens when the disk is full.
struct Bounds {
  std::uint64_t segment_bytes = 0;  // the file is set aside as <name>-<suffix>.ndjson when it would exceed this; 0: never
  std::uint64_t max_bytes = 0;      // all segments: the oldest but the first goes; 0: none goes
  bool spill = false;               // records that cannot be written go to stderr, chained on; else the log is poisoned
};
// max_bytes in eighths: seven whole segments at least are there beside the one that is written.
[[nodiscard]] inline Bounds bounded(std::uint64_t max_bytes, bool spill) { return {max_bytes / 8, max_bytes, spill}; }

class Log {
 public:
  // Creates `directory`/`name`.ndjson (mode 0600, O_APPEND, O_EXCL: a log is never continued by another).
  [[nodiscard]] static Result<Log> create(const std::string& directory, const std::string& name, Bounds bounds = {});
  // For the launcher's own log, whose name stays the same: an earlier `name`.ndjson is first renamed to
  // `name`-<UTC time>.ndjson, so that a restart neither continues nor overwrites it. Its segments are named so, too.
  [[nodiscard]] static Result<Log> create_rotated(const std::string& directory, const std::string& name, Bounds bounds = {});

  // Adds {seq, time, mono_us, event, ...fields, prev, hash}. An error means that the record is not on disk: the caller
  // must not go on with what it was about to do; the log is then poisoned and every later append fails, too. `fields`
  // is an object without the names that the log itself writes. Durable (fdatasync) after boot.
  // The process ignores SIGXFSZ, or a file size limit kills it here instead of giving an error.
  [[nodiscard]] Status append(Event event, const json::Value& fields);
  // The same in two steps: the slow part of a large record can be done in advance.
  [[nodiscard]] static Result<std::string> prepare(const json::Value& fields);
  [[nodiscard]] Status append_prepared(Event event, const Result<std::string>& prepared);
  [[nodiscard]] const std::string& head() const { return head_; }  // hash of the last record
  [[nodiscard]] std::uint64_t count() const { return seq_; }
  [[nodiscard]] std::uint64_t bytes() const;  // of what is there

  struct Segment {
    unsigned number = 1;
    std::uint64_t first_seq = 1, last_seq = 0, bytes = 0;
    std::string head;  // hash of its last record
  };

 private:
  Log(std::string directory, std::string name, Bounds bounds, bool dated)
      : directory_(std::move(directory)), name_(std::move(name)), bounds_(bounds), dated_(dated) {}
  [[nodiscard]] static Result<Log> start(Log log);
  [[nodiscard]] std::string path(const std::string& suffix) const { return directory_ + "/" + name_ + suffix + ".ndjson"; }
  [[nodiscard]] std::string compose(Event event, const std::string& members, std::string& hash) const;
  [[nodiscard]] Status put(Event event, const std::string& members);
  [[nodiscard]] Status spill(std::string_view line, const Error& why);
  [[nodiscard]] Status next_segment();
  [[nodiscard]] Status remove_oldest();

  std::string directory_, name_;
  Bounds bounds_;
  bool dated_;  // segments set aside are named by the time, not by their number
  Fd fd_;
  bool file_ = false;  // `name`.ndjson is ours
  std::uint64_t seq_ = 0;
  std::string head_{kNoPrevious};
  Segment current_;
  std::vector<Segment> earlier_;
  std::uint64_t removed_from_ = 0;  // first seq of what was removed; 0: nothing was
  std::uint64_t spilled_from_ = 0;  // seq of the first record that went to stderr; 0: none does
  std::uint64_t cut_bytes_ = 0;     // of a record, at the end of the file, when it began
  std::int64_t retry_us_ = 0;
  bool poisoned_ = false;
};

// Of the file's name, of a segment that was set aside: "-000001".
[[nodiscard]] std::string segment_suffix(unsigned number);

// What the launcher signs at a session's end: nothing else that this key signs begins so.
[[nodiscard]] std::string root_text(std::string_view file, std::uint64_t count, std::string_view head);

// What the end of a log says without being parsed.
struct Tail {
  std::uint64_t count = 0;   // seq of the last whole record; 0: there is none
  std::int64_t time_ns = 0;  // when it was written, to the second; 0: there is none
  std::string head;
};
[[nodiscard]] Tail tail_of(const Result<Fd>& file);

// Replaces values that look like credentials in an argv (array of strings) before it is written. More: redact.h.
[[nodiscard]] json::Value redacted_argv(const json::Value& argv);

}  // namespace caisson::audit
