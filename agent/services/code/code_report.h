// Reports of the programs in agent/inside about a job, in the stream of its output. A nonce, new for each job, precedes a report,
// so output of an earlier job is never taken for one. Residual: the job runs in the program that holds the nonce and can forge a
// report; it deceives only its own caller. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/services/common/output_buffer.h"
#include "launcher/common/base/json.h"

namespace caisson::services {

// RS nonce SP length LF, then that many bytes of JSON.
struct FoundReport {
  std::size_t begin, end;  // of the whole report, in the bytes that were searched
  json::Value value;
};
// The last complete report: a JSON object of a sensible size.
[[nodiscard]] std::optional<FoundReport> find_report(std::string_view bytes, std::string_view nonce);

// Finds the first report in a stream that is still being written. However often it is called and whatever was forged, each byte
// is examined once and parsed as JSON at most once, because the agent's one thread serves all clients.
class ReportSearch {
 public:
  // The buffer outlives this. from: where the job's output begins.
  ReportSearch(const OutputBuffer& buffer, const std::string& nonce, std::uint64_t from);

  [[nodiscard]] bool found();
  // Position and content of the report; without a report, the end of the stream and null.
  [[nodiscard]] std::uint64_t begin() const { return found_ ? begin_ : buffer_.end(); }
  [[nodiscard]] std::uint64_t end() const { return found_ ? end_ : buffer_.end(); }
  [[nodiscard]] const json::Value& value() const { return found_ ? *found_ : none_; }

 private:
  [[nodiscard]] bool take_open(std::uint64_t limit);

  const OutputBuffer& buffer_;
  const std::string mark_;
  const json::Value none_ = json::Value::object();
  std::uint64_t seen_;                 // only the open report begins before it
  bool open_ = false;                  // an RS was seen at begin_, and none behind it
  std::uint64_t begin_ = 0, end_ = 0;  // of the open or the found one
  std::optional<json::Value> found_;
};

// One job in the form that the programs read: a line with its length, then the JSON.
[[nodiscard]] std::string job_frame(const json::Value& job);
// The most bytes of jobs and their input that the program has not read.
inline constexpr std::size_t kMaxJob = 32 * 1024 * 1024;

// A whole stream as whole_text() gives it, without the report.
struct StreamText {
  std::string text;
  std::optional<json::Value> report;
};
[[nodiscard]] StreamText text_and_report(const OutputBuffer& buffer, std::string_view nonce);

}  // namespace caisson::services
