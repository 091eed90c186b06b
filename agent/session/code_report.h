// What the programs of agent/inside say about a job, in the stream of its output: behind a nonce that is new for each job, so
// that what an earlier one wrote is never taken for it. Residual: the job runs in the program that holds the nonce and can say
// what it likes; it deceives its own caller only. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/session/output_buffer.h"
#include "launcher/base/json.h"

namespace caisson::session {

// RS nonce SP length LF, and as many bytes of JSON.
struct FoundReport {
  std::size_t begin, end;  // of all of it, in the bytes that were searched
  json::Value value;
};
// The last one that is whole. What is no JSON object of a sensible size is none.
[[nodiscard]] std::optional<FoundReport> find_report(std::string_view bytes, std::string_view nonce);

// The report in a stream that is still being written: looks at each byte once, until it begins to look like one.
class ReportSearch {
 public:
  // Both outlive it. from: where the job's output begins.
  ReportSearch(const OutputBuffer& buffer, const std::string& nonce, std::uint64_t from);

  [[nodiscard]] bool found();
  // Where it is, and what it says; without one: the end of the stream, and nothing.
  [[nodiscard]] std::uint64_t begin() const { return found_ ? at_ + found_->begin : buffer_.end(); }
  [[nodiscard]] std::uint64_t end() const { return found_ ? at_ + found_->end : buffer_.end(); }
  [[nodiscard]] json::Value value() const { return found_ ? found_->value : json::Value::object(); }

 private:
  const OutputBuffer& buffer_;
  const std::string& nonce_;
  const std::string mark_;
  std::uint64_t at_;
  std::optional<FoundReport> found_;
};

// One job as the programs read it: a line with its length, and the JSON.
[[nodiscard]] std::string job_frame(const json::Value& job);

// A whole stream as text, as whole_text(), with the report taken out of it.
struct StreamText {
  std::string text;
  std::optional<json::Value> report;
};
[[nodiscard]] StreamText text_and_report(const OutputBuffer& buffer, std::string_view nonce);

}  // namespace caisson::session
