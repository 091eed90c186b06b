#include "agent/routes/audit_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace caisson::routes {
namespace {

constexpr std::size_t kMaxLine = 64 * 1024, kChunk = 64 * 1024;
constexpr int kIdlePolls = 40;  // then asks the launcher whether the log continues in another segment, or has ended

std::string read_at(const Fd& fd, std::int64_t offset, std::size_t most) {
  std::string out(most, '\0');
  ssize_t n;
  do n = ::pread(fd.get(), out.data(), out.size(), offset);
  while (n < 0 && errno == EINTR);
  out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return out;
}

std::int64_t size_of(const Fd& fd) {
  struct stat st{};
  return ::fstat(fd.get(), &st) == 0 ? st.st_size : 0;
}

// The number at the beginning of a line; 0: the line is not a record.
std::int64_t seq_of(std::string_view line) {
  static constexpr std::string_view kStart = "{\"seq\":";
  std::int64_t seq = 0;
  if (!line.starts_with(kStart)) return 0;
  std::from_chars(line.data() + kStart.size(), line.data() + line.size(), seq);
  return seq;
}

std::optional<AuditRecord> parse(std::string line) {
  auto fields = json::parse(line, {.max_bytes = kMaxLine, .max_depth = 64, .max_values = kMaxLine});
  if (!fields || !fields->is_object()) return std::nullopt;
  const std::int64_t seq = seq_of(line);
  return AuditRecord{std::move(line), std::move(*fields), seq};
}

std::string first_line(const Fd& fd) {
  std::string text = read_at(fd, 0, kMaxLine);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

std::string last_line(const Fd& fd) {
  const std::int64_t size = size_of(fd), from = std::max<std::int64_t>(size - static_cast<std::int64_t>(2 * kMaxLine), 0);
  std::string text = read_at(fd, from, static_cast<std::size_t>(size - from));
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  if (text.empty()) return text;
  text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string event_of(const AuditRecord& record) { return record.fields.value("event", ""); }

}  // namespace

task<AuditLog::Segment> AuditLog::segment(bridge::LauncherClient& launcher, std::string session, std::int64_t number,
                                          bool& running) {
  CO_TRY_ASSIGN(bridge::AuditSegment opened, co_await launcher.audit_open(std::move(session), number));
  running = opened.running;
  Segment out{.number = number, .fd = std::move(opened.fd)};
  const std::string line = first_line(out.fd);
  out.first_seq = std::max<std::int64_t>(seq_of(line), 1);
  if (number == 0) {
    const auto first = parse(line);
    const bool later = first && event_of(*first) == "segment_start";
    const auto said = later ? json::get_int(first->fields, "segment") : std::optional<std::int64_t>(1);
    out.number = said && *said ? std::max<std::int64_t>(**said, 1) : 1;
  }
  co_return out;
}

task<std::vector<AuditLog::Segment>> AuditLog::segments(bridge::LauncherClient& launcher, std::string session, bool& running) {
  std::vector<Segment> out;
  CO_TRY_ASSIGN(Segment last, co_await segment(launcher, session, 0, running));
  std::int64_t number = last.number;
  out.push_back(std::move(last));
  while (--number >= 1) {
    auto earlier = co_await segment(launcher, session, number, running);
    if (!earlier && earlier.error().code != Code::not_found) co_return std::unexpected(std::move(earlier).error());
    if (earlier) out.push_back(std::move(*earlier));
    else if (number > 1) number = 2;  // segments between it and the first were removed for room
  }
  std::ranges::reverse(out);
  co_return out;
}

task<AuditLog> AuditLog::open(bridge::LauncherClient& launcher, std::string session, std::int64_t after_seq) {
  AuditLog log(launcher, session);
  CO_TRY_ASSIGN(std::vector<Segment> all, co_await segments(launcher, session, log.running_));
  std::size_t at = all.size() - 1;
  while (at > 0 && all[at].first_seq > after_seq + 1) --at;
  log.at_ = std::move(all[at]);
  log.after_seq_ = after_seq;
  log.seek(after_seq);
  co_return log;
}

// Halves the file until the rest is quickly read: records are in the order of their numbers.
void AuditLog::seek(std::int64_t after_seq) {
  std::int64_t low = 0, high = size_of(at_.fd);
  while (high - low > static_cast<std::int64_t>(4 * kChunk)) {
    const std::int64_t middle = low + (high - low) / 2;
    const std::string text = read_at(at_.fd, middle, 2 * kChunk);
    const std::size_t line = text.find('\n') + 1;  // npos + 1 is 0
    const std::int64_t seq = line == 0 ? 0 : seq_of(std::string_view(text).substr(line));
    if (seq == 0 || seq > after_seq) high = middle;
    else low = middle + static_cast<std::int64_t>(line);
  }
  offset_ = low;
}

std::optional<std::string> AuditLog::line() {
  for (;;) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string out = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return out;
    }
    if (buffer_.size() > kMaxLine) buffer_.clear();  // no record
    const std::string more = read_at(at_.fd, offset_, kChunk);
    if (more.empty()) return std::nullopt;
    offset_ += static_cast<std::int64_t>(more.size());
    buffer_ += more;
  }
}

task<std::optional<AuditRecord>> AuditLog::next() {
  for (;;) {
    auto text = line();
    if (!text) {
      // The end of a file: of the segment, of the log, or for now. After a full disk a log continues without a record of that
      // here.
      const bool ask = segment_ended_ || !running_ || ++idle_ >= kIdlePolls;
      if (!ask) co_return std::optional<AuditRecord>();
      idle_ = 0;
      CO_TRY_ASSIGN(const bool more, co_await advance());
      if (!more) co_return std::optional<AuditRecord>();
      continue;
    }
    idle_ = 0;
    auto record = parse(std::move(*text));
    if (!record || record->seq <= after_seq_) continue;
    after_seq_ = record->seq;
    if (event_of(*record) == "segment_end") segment_ended_ = true;
    if (event_of(*record) == "session_end") running_ = false;
    co_return record;
  }
}

// Opens the next segment, if there is one; true: there is more to read.
task<bool> AuditLog::advance() {
  const bool was_running = running_;
  CO_TRY_ASSIGN(std::vector<Segment> all, co_await segments(*launcher_, session_, running_));
  const auto next = std::ranges::find_if(all, [this](const Segment& s) { return s.number > at_.number; });
  if (next == all.end()) co_return was_running && !running_;  // the rest of the ended segment
  at_ = std::move(*next);
  buffer_.clear();
  offset_ = 0;
  segment_ended_ = false;
  co_return true;
}

task<AuditLog::Ends> AuditLog::ends(bridge::LauncherClient& launcher, std::string session) {
  Ends out;
  CO_TRY_ASSIGN(const std::vector<Segment> all, co_await segments(launcher, std::move(session), out.running));
  out.first = parse(first_line(all.front().fd));
  out.last = parse(last_line(all.back().fd));
  for (const Segment& segment : all) out.bytes += size_of(segment.fd);
  co_return out;
}

}  // namespace caisson::routes
