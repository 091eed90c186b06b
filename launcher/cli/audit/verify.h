// Checks a whole log: any byte or record that was changed, removed, added or moved is found and named. What the chain
// alone cannot show (records cut off the end, a log rewritten from the start) shows against the count and head that the
// launcher wrote to its own log when the session ended. Records that the launcher removed (a segment removed
// for room, a log deleted for its age, records that went to stderr) are accepted on its statement in the chain, and counted.
// Needs no launcher and no privilege beyond reading the files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/base/result.h"

namespace caisson::audit {

struct Finding {
  std::string file;          // its name
  std::uint64_t line = 0;    // 1-based
  std::uint64_t offset = 0;  // of the line's first byte
  std::string what;
};
inline constexpr std::size_t kMaxFindings = 20;

// What the launcher's own log says about a session's log ("session_end", "log_root" and "log_deleted" records).
struct Expected {
  std::uint64_t count = 0;
  std::string head;
  std::string key, signature;  // of root_text(), where the launcher signed
  std::string why;             // of a deletion
};

enum class Verdict {
  intact,  // whole, with its end
  open,    // intact so far, no end: the session still runs, or the end was cut off
  broken,
};
[[nodiscard]] std::string_view verdict_name(Verdict verdict);

struct Verification {
  Verdict verdict = Verdict::open;
  std::uint64_t records = 0;  // that are here
  std::uint64_t removed = 0;  // that are not, and a record says so
  std::uint64_t spilled = 0;  // that went to the launcher's stderr, and a record says so
  std::string head;           // hash of the last record
  std::uint64_t last_seq = 0;
  std::string first_time, last_time;
  bool expected_checked = false;
  std::vector<Finding> findings;  // at most kMaxFindings
};

// The segments of one log in their order; of the launcher's own, whose boots refer to each other, all files.
[[nodiscard]] Result<Verification> verify_log(const std::vector<std::string>& paths,
                                              const std::optional<Expected>& expected = std::nullopt);
[[nodiscard]] inline Result<Verification> verify_file(const std::string& path,
                                                      const std::optional<Expected>& expected = std::nullopt) {
  return verify_log({path}, expected);
}
[[nodiscard]] json::Value verification_json(const Verification& verification);

// What the launcher's logs of `directory` (launcher*.ndjson) say, by the name of a log's last file ("s-0123456789abcdef.ndjson").
struct Index {
  std::map<std::string, Expected> ended, deleted;
};
[[nodiscard]] Result<Index> read_index(const std::string& directory);
[[nodiscard]] bool is_launcher_log(std::string_view file_name);

// The log that a file is a segment of, by the name of its last file: "s-0123456789abcdef-000001.ndjson" belongs to
// "s-0123456789abcdef.ndjson", every launcher's to "launcher.ndjson"; any other name is its own.
[[nodiscard]] std::string log_of(std::string_view file_name);
// All logs of a directory: the paths of each one's files, in order.
using Logs = std::map<std::string, std::vector<std::string>>;
[[nodiscard]] Result<Logs> logs_of(const std::string& directory);

}  // namespace caisson::audit
