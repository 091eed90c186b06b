#include "agent/session/code_report.h"

#include <charconv>

#include "agent/session/text.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxReport = 8 * 1024 * 1024;

std::string mark_of(std::string_view nonce) { return "\x1e" + std::string(nonce) + " "; }

}  // namespace

std::optional<FoundReport> find_report(std::string_view bytes, std::string_view nonce) {
  const std::string mark = mark_of(nonce);
  for (std::size_t from = std::string_view::npos;;) {
    const std::size_t begin = bytes.rfind(mark, from);
    if (begin == std::string_view::npos) return std::nullopt;
    const std::string_view rest = bytes.substr(begin + mark.size());
    std::size_t size = 0;
    const auto [after, error] = std::from_chars(rest.data(), rest.data() + std::min<std::size_t>(rest.size(), 10), size);
    const auto digits = static_cast<std::size_t>(after - rest.data());
    if (error == std::errc() && digits < rest.size() && rest[digits] == '\n' && size <= kMaxReport &&
        rest.size() - digits - 1 >= size) {
      auto value = json::parse(rest.substr(digits + 1, size), {.max_bytes = kMaxReport, .max_depth = 32, .max_values = 1 << 16});
      if (value && value->is_object()) return FoundReport{begin, begin + mark.size() + digits + 1 + size, std::move(*value)};
    }
    if (begin == 0) return std::nullopt;
    from = begin - 1;
  }
}

ReportSearch::ReportSearch(const OutputBuffer& buffer, const std::string& nonce, std::uint64_t from)
    : buffer_(buffer), nonce_(nonce), mark_(mark_of(nonce)), at_(from) {}

bool ReportSearch::found() {
  if (found_) return true;
  at_ = std::max(at_, buffer_.begin());
  const std::string bytes = buffer_.read(at_);
  const std::size_t begin = bytes.find(mark_);
  if (begin == std::string::npos) {
    at_ += bytes.size() - std::min(bytes.size(), mark_.size() - 1);
    return false;
  }
  at_ += begin;
  found_ = find_report(std::string_view(bytes).substr(begin), nonce_);
  return found_.has_value();
}

std::string job_frame(const json::Value& job) {
  const std::string text = json::dump(job);
  return std::to_string(text.size()) + "\n" + text;
}

StreamText text_and_report(const OutputBuffer& buffer, std::string_view nonce) {
  StreamText out;
  std::string bytes = whole_bytes(buffer);
  if (auto found = find_report(bytes, nonce)) {
    out.report = std::move(found->value);
    bytes.erase(found->begin, found->end - found->begin);
  }
  out.text = to_utf8(bytes);
  return out;
}

}  // namespace caisson::session
