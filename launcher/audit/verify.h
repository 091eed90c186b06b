// Checks a whole log: any byte or record that was changed, removed, added or moved is found and named. What the chain
// alone cannot show (records cut off the end, a log rewritten from the start) shows against the count and head that the
// launcher wrote to its own log when the session ended. Needs no launcher and no privilege beyond reading the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/json.h"
#include "launcher/base/result.h"

namespace caisson::audit {

struct Finding {
  std::uint64_t line = 0;    // 1-based
  std::uint64_t offset = 0;  // of the line's first byte
  std::string what;
};
inline constexpr std::size_t kMaxFindings = 20;

// What the launcher's own log says about a session's log ("session_end" record: file, count, head).
struct Expected {
  std::uint64_t count = 0;
  std::string head;
};

enum class Verdict {
  intact,  // whole, with its end
  open,    // intact so far, no end: the session still runs, or the end was cut off
  broken,
};
[[nodiscard]] std::string_view verdict_name(Verdict verdict);

struct Verification {
  Verdict verdict = Verdict::open;
  std::uint64_t records = 0;
  std::string head;  // hash of the last record
  std::string first_time, last_time;
  bool expected_checked = false;
  std::vector<Finding> findings;  // at most kMaxFindings
};

[[nodiscard]] Result<Verification> verify_file(const std::string& path, const std::optional<Expected>& expected = std::nullopt);
[[nodiscard]] json::Value verification_json(const Verification& verification);

// By file name ("s-0123456789abcdef.ndjson"): what the launcher's logs of `directory` (launcher*.ndjson) expect.
using Index = std::map<std::string, Expected>;
[[nodiscard]] Result<Index> read_index(const std::string& directory);
[[nodiscard]] bool is_launcher_log(std::string_view file_name);

}  // namespace caisson::audit
