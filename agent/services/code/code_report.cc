#include "agent/services/code/code_report.h"

#include <charconv>

#include "agent/services/common/text.h"

namespace caisson::services {
namespace {

constexpr std::size_t kMaxReport = 8 * 1024 * 1024;

constexpr std::size_t kMostDigits = 10;
constexpr char kSeparator = '\x1e';

std::string mark_of(std::string_view nonce) { return kSeparator + std::string(nonce) + " "; }

// The content after a mark: digits, a line feed, and that many bytes of JSON. nullopt: not of this form, or not complete.
struct Extent {
  std::size_t head, size;
};
std::optional<Extent> extent_of(std::string_view rest) {
  std::size_t size = 0;
  const auto [after, error] = std::from_chars(rest.data(), rest.data() + std::min(rest.size(), kMostDigits), size);
  const auto digits = static_cast<std::size_t>(after - rest.data());
  if (error != std::errc() || digits >= rest.size() || rest[digits] != '\n' || size > kMaxReport) return std::nullopt;
  return Extent{digits + 1, size};
}

std::optional<json::Value> report_in(std::string_view text) {
  // A cheap check first, so that a forged mark does not cost a parser run.
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return std::nullopt;
  auto value = json::parse(text, {.max_bytes = kMaxReport, .max_depth = 32, .max_values = 1 << 16});
  if (!value || !value->is_object()) return std::nullopt;
  return std::move(*value);
}

}  // namespace

std::optional<FoundReport> find_report(std::string_view bytes, std::string_view nonce) {
  const std::string mark = mark_of(nonce);
  // JSON has no RS (in a string it is \u001e), so no report extends past the next mark. Each byte is read for one mark only,
  // however many marks there are and whatever lengths they claim.
  while (true) {
    const std::size_t begin = bytes.rfind(mark);
    if (begin == std::string_view::npos) return std::nullopt;
    const std::string_view rest = bytes.substr(begin + mark.size());
    const auto extent = extent_of(rest);
    if (extent && rest.size() - extent->head >= extent->size) {
      const std::size_t end = begin + mark.size() + extent->head + extent->size;
      if (auto value = report_in(rest.substr(extent->head, extent->size))) return FoundReport{begin, end, std::move(*value)};
    }
    bytes = bytes.substr(0, begin);
  }
}

ReportSearch::ReportSearch(const OutputBuffer& buffer, const std::string& nonce, std::uint64_t from)
    : buffer_(buffer), mark_(mark_of(nonce)), seen_(from) {}

bool ReportSearch::found() {
  if (found_) return true;
  seen_ = std::max(seen_, buffer_.begin());
  if (open_ && begin_ < buffer_.begin()) open_ = false;  // its beginning was dropped
  while (seen_ < buffer_.end()) {
    const std::string piece = buffer_.read(seen_, OutputBuffer::kChunkBytes);
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t rs = std::min(piece.find(kSeparator, at), piece.size());
      if (open_ && take_open(seen_ + rs)) return true;
      if (rs < piece.size()) {
        open_ = true;
        begin_ = seen_ + rs;
      }
      at = rs + 1;
    }
    seen_ += piece.size();
  }
  return false;
}

// The report at begin_ extends to `limit` at most: there the bytes end, or another report begins.
bool ReportSearch::take_open(std::uint64_t limit) {
  const auto here = static_cast<std::size_t>(limit - begin_);
  const std::string head = buffer_.read(begin_, std::min(here, mark_.size() + kMostDigits + 1));
  if (!head.starts_with(mark_)) return false;
  const auto extent = extent_of(std::string_view(head).substr(mark_.size()));
  if (!extent || here < mark_.size() + extent->head + extent->size) return false;
  open_ = false;  // parsed once, whatever it contains
  const std::uint64_t text = begin_ + mark_.size() + extent->head;
  auto value = report_in(buffer_.read(text, extent->size));
  if (!value) return false;
  found_ = std::move(*value);
  end_ = text + extent->size;
  return true;
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

}  // namespace caisson::services
