// What the programs of agent/inside say about a job, in the stream of its output: behind a nonce that is new for each job, so
// that what an earlier one wrote is never taken for it. Residual: the job runs in the program that holds the nonce and can say
// what it likes; it deceives its own caller only. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/services/common/output_buffer.h"
#include "launcher/base/json.h"

namespace caisson::services {

// RS nonce SP length LF, and as many bytes of JSON.
struct FoundReport {
  std::size_t begin, end;  // of all of it, in the bytes that were searched
  json::Value value;
};
// The last one that is whole. What is no JSON object of a sensible size is none.
[[nodiscard]] std::optional<FoundReport> find_report(std::string_view bytes, std::string_view nonce);

// The first report in a stream that is still being written. However often it is asked and whatever was forged, each byte is
// looked at once and read as JSON once at most: the agent's one thread serves everybody.
class ReportSearch {
 public:
  // The buffer outlives it. from: where the job's output begins.
  ReportSearch(const OutputBuffer& buffer, const std::string& nonce, std::uint64_t from);

  [[nodiscard]] bool found();
  // Where it is, and what it says; without one: the end of the stream, and nothing.
  [[nodiscard]] std::uint64_t begin() const { return found_ ? begin_ : buffer_.end(); }
  [[nodiscard]] std::uint64_t end() const { return found_ ? end_ : buffer_.end(); }
  [[nodiscard]] const json::Value& value() const { return found_ ? *found_ : none_; }

 private:
  [[nodiscard]] bool take_open(std::uint64_t limit);

  const OutputBuffer& buffer_;
  const std::string mark_;
  const json::Value none_ = json::Value::object();
  std::uint64_t seen_;                 // no report begins before it but the open one
  bool open_ = false;                  // an RS was seen at begin_, and none behind it
  std::uint64_t begin_ = 0, end_ = 0;  // of the open or the found one
  std::optional<json::Value> found_;
};

// One job as the programs read it: a line with its length, and the JSON.
[[nodiscard]] std::string job_frame(const json::Value& job);
// Of jobs and their input, as long as the program has not read them.
inline constexpr std::size_t kMaxJob = 32 * 1024 * 1024;

// A whole stream as text, as whole_text(), with the report taken out of it.
struct StreamText {
  std::string text;
  std::optional<json::Value> report;
};
[[nodiscard]] StreamText text_and_report(const OutputBuffer& buffer, std::string_view nonce);

}  // namespace caisson::services
