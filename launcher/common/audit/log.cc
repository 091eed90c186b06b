#include "launcher/common/audit/log.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "launcher/common/audit/redact.h"
#include "launcher/common/base/hash.h"
#include "launcher/common/base/sys.h"

namespace caisson::audit {
namespace {

// On disk before append returns. The rest is in the page cache then: a power cut may take it, a crash not.
bool lasting(Event event) { return event == Event::boot || event == Event::segment_removed || event == Event::log_deleted; }
constexpr std::string_view kReserved[] = {"seq", "time", "mono_us", "event", "prev", "hash"};

// The launcher makes the ids, but every file name is checked where it is used.
bool plain_name(std::string_view name) {
  static constexpr std::string_view kPlain = "-_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return !name.empty() && name.size() <= 128 && name.front() != '.' && name.find_first_not_of(kPlain) == std::string_view::npos;
}

// Of a line, beside what the caller gives: seq, time, mono_us, event, prev, hash and their names.
constexpr std::size_t kFrame = 384;
constexpr std::int64_t kRetryUs = 1'000'000;
constexpr int kSpillMs = 100;  // for the reader of a full stderr, in the middle of a record

// One write(2) to an O_APPEND descriptor: a record lies in the file whole or, after an error, cut at the very end, where
// verify reports it. Nothing is taken back: an audit log only grows.
Status write_record(const Fd& fd, std::string_view line, bool durable, std::uint64_t& written) {
  ssize_t n;
  do n = ::write(fd.get(), line.data(), line.size());
  while (n < 0 && errno == EINTR);
  written = n > 0 ? static_cast<std::uint64_t>(n) : 0;
  if (n == static_cast<ssize_t>(line.size()) && (!durable || ::fdatasync(fd.get()) == 0)) return {};
  // A short write has no errno.
  return sys_error("write audit record", n < 0 || written == line.size() ? errno : ENOSPC);
}

// The moment when a file is set aside, not its last write, which file systems round: names sort in the order of writing.
std::string stamp() {
  std::string out = sys::rfc3339(sys::realtime_ns());
  std::erase_if(out, [](char c) { return c == '-' || c == ':' || c == '.'; });
  return "-" + out;
}

}  // namespace

std::string segment_suffix(unsigned number) {
  const std::string digits = std::to_string(number);
  return "-" + std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

std::string root_text(std::string_view file, std::uint64_t count, std::string_view head) {
  return std::string("caisson-audit-root:1\n").append(file).append("\n").append(std::to_string(count)).append("\n").append(head);
}

Result<Log> Log::start(Log log) {
  if (!plain_name(log.name_)) return fail(Code::invalid_argument, "audit log name " + quote(log.name_));
  auto fd = sys::open(log.path(""), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0600);
  if (fd) log.fd_ = std::move(*fd), log.file_ = true;
  else if (!log.bounds_.spill || fd.error().code == Code::already_exists) return std::unexpected(std::move(fd).error());
  return log;
}

Result<Log> Log::create(const std::string& directory, const std::string& name, Bounds bounds) {
  return start(Log(directory, name, bounds, false));
}

Result<Log> Log::create_rotated(const std::string& directory, const std::string& name, Bounds bounds) {
  Log log(directory, name, bounds, true);
  if (plain_name(name) && ::access(log.path("").c_str(), F_OK) == 0) {
    const std::string old = log.path(stamp());
    // RENAME_NOREPLACE: no earlier log is ever overwritten.
    if (::renameat2(AT_FDCWD, log.path("").c_str(), AT_FDCWD, old.c_str(), RENAME_NOREPLACE) != 0)
      return sys_error("rename " + quote(log.path("")) + " to " + quote(old));
  }
  return start(std::move(log));
}

std::uint64_t Log::bytes() const {
  std::uint64_t sum = current_.bytes;
  for (const Segment& segment : earlier_) sum += segment.bytes;
  return sum;
}

Result<std::string> Log::prepare(const json::Value& fields) {
  if (!fields.is_object() && !fields.is_null()) return fail(Code::internal, "audit fields are not an object");
  for (const std::string_view name : kReserved)
    if (fields.contains(name)) return fail(Code::internal, "audit field " + quote(name) + " is reserved");
  return fit(fields, kMaxRecord - kFrame);
}

Status Log::append(Event event, const json::Value& fields) { return append_prepared(event, prepare(fields)); }

Status Log::append_prepared(Event event, const Result<std::string>& prepared) {
  if (poisoned_) return fail(Code::io, "audit log is poisoned: an earlier record could not be written");
  if (!prepared) return std::unexpected(prepared.error());
  const std::string& members = *prepared;

  if (spilled_from_ != 0) {
    if (event == Event::session_end || sys::monotonic_us() - retry_us_ > kRetryUs) {
      retry_us_ = sys::monotonic_us();
      (void)next_segment();  // still no room: go on as before
    }
  } else if (bounds_.segment_bytes != 0 && current_.bytes > kFrame &&
             current_.bytes + members.size() + 2 * kFrame > bounds_.segment_bytes) {
    TRY(put(Event::segment_end, "{\"segment\":" + std::to_string(current_.number) + "}"));
    if (const Status next = spilled_from_ == 0 ? next_segment() : Status(); !next) {
      poisoned_ = !bounds_.spill;
      if (poisoned_) return next;
      fd_.reset();  // behind its end nothing is written
    }
    while (bounds_.max_bytes != 0 && earlier_.size() > 1 && bytes() + bounds_.segment_bytes > bounds_.max_bytes)
      TRY(remove_oldest());
  }
  return put(event, members);
}

std::string Log::compose(Event event, const std::string& members, std::string& hash) const {
  std::string line = "{\"seq\":" + std::to_string(seq_ + 1) + ",\"time\":\"" + sys::rfc3339(sys::realtime_ns()) +
                     "\",\"mono_us\":" + std::to_string(sys::monotonic_us()) + ",\"event\":\"";
  line.append(event_name(event)).append("\"");
  if (members.size() > 2) line.append(",").append(members, 1, members.size() - 2);
  line.append(",\"prev\":\"").append(head_).append("\"}");
  hash = sha256_hex(line);
  line.pop_back();
  return line.append(",\"hash\":\"").append(hash).append("\"}\n");
}

Status Log::put(Event event, const std::string& members) {
  std::string hash;
  const std::string line = compose(event, members, hash);
  std::uint64_t written = 0;
  Status done = fd_.valid() && spilled_from_ == 0 ? write_record(fd_, line, lasting(event), written)
                                                  : Status(std::unexpected(Error(Code::io, "write audit record", ENOSPC)));
  current_.bytes += written;
  if (!done && spilled_from_ == 0) cut_bytes_ = written;
  if (!done && bounds_.spill) done = spill(line, done.error());
  if (!done) {
    poisoned_ = true;
    return done;
  }
  head_ = std::move(hash);
  ++seq_;
  if (spilled_from_ == 0) current_.last_seq = seq_, current_.head = head_;
  return {};
}

// To stderr, where whoever runs the container has it: the record as it would have been in the file, with the log's name. A
// stderr that takes nothing must not stop the launcher: then the record is lost like on a full disk, and that is an error.
Status Log::spill(std::string_view line, const Error& why) {
  if (!sys::writable(STDERR_FILENO, 0)) return std::unexpected(why);
  std::string text;
  if (spilled_from_ == 0) {
    text = "caisson-launcher: audit log " + name_ + ": " + why.text() + ": its records follow here until there is room\n";
    retry_us_ = sys::monotonic_us();
  }
  text.append("{\"log\":\"").append(name_).append("\",\"record\":").append(line.substr(0, line.size() - 1)).append("}\n");
  // A pipe with room for a little is ready, too, and would hold us until all of it has been read: only what surely fits at once.
  for (std::string_view rest = text; !rest.empty();) {
    if (!sys::writable(STDERR_FILENO, kSpillMs)) return std::unexpected(why);
    const std::size_t part = std::min<std::size_t>(rest.size(), PIPE_BUF);
    TRY(sys::write_all(STDERR_FILENO, rest.substr(0, part)));
    rest.remove_prefix(part);
  }
  if (spilled_from_ == 0) spilled_from_ = seq_ + 1;
  return {};
}

// The file is complete with its first record before it has its name, and the one before it is set aside only then: a disk
// that is full at any step leaves all as it was.
Status Log::next_segment() {
  Segment next{.number = current_.number + (file_ ? 1 : 0),
               .first_seq = spilled_from_ != 0 ? spilled_from_ : seq_ + 1,
               .last_seq = seq_ + 1};
  json::Value fields{{"segment", next.number}};
  if (spilled_from_ != 0) {
    fields["spilled"] = seq_ + 1 - spilled_from_;
    fields["first_seq"] = spilled_from_;
    fields["last_seq"] = seq_;
    fields["cut_bytes"] = cut_bytes_;
  }
  const std::string line = compose(Event::segment_start, json::dump(fields), next.head);
  const std::string made = directory_ + "/" + name_ + ".next";  // no *.ndjson: nobody takes it for a log
  TRY_ASSIGN(Fd fd, sys::open(made, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW, 0600));
  const std::string aside = path(dated_ ? stamp() : segment_suffix(current_.number));
  Status done = write_record(fd, line, true, next.bytes);
  if (done && file_ && ::renameat2(AT_FDCWD, path("").c_str(), AT_FDCWD, aside.c_str(), RENAME_NOREPLACE) != 0)
    done = sys_error("rename " + quote(path("")));
  if (done && ::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path("").c_str(), RENAME_NOREPLACE) != 0)
    done = sys_error("rename " + quote(made));
  if (!done) {
    (void)::unlink(made.c_str());
    return done;
  }
  if (file_ && !dated_) earlier_.push_back(std::move(current_));
  file_ = true;
  fd_ = std::move(fd);
  head_ = next.head;
  ++seq_;
  current_ = std::move(next);
  spilled_from_ = cut_bytes_ = 0;
  return {};
}

// Never the first: it says who asked for what and what was applied. The record covers all that went, as those of earlier
// removals go, too.
Status Log::remove_oldest() {
  const Segment gone = earlier_[1];
  if (removed_from_ == 0) removed_from_ = gone.first_seq;
  earlier_.erase(earlier_.begin() + 1);
  TRY(put(Event::segment_removed, json::dump({{"segment", gone.number},
                                              {"first_seq", removed_from_},
                                              {"last_seq", gone.last_seq},
                                              {"bytes", gone.bytes},
                                              {"head", gone.head}})));
  if (::unlink(path(segment_suffix(gone.number)).c_str()) != 0 && errno != ENOENT) return sys_error("remove an audit segment");
  return {};
}

Tail tail_of(const Result<Fd>& file) {
  static constexpr std::string_view kSeq = "{\"seq\":", kEnd = "\"}";
  Tail tail;
  struct stat st{};
  if (!file || ::fstat(file->get(), &st) != 0) return tail;
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(st.st_size), 2 * kMaxRecord), '\0');
  if (::pread(file->get(), text.data(), text.size(), st.st_size - static_cast<off_t>(text.size())) !=
      static_cast<ssize_t>(text.size()))
    return tail;
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  if (text.empty()) return tail;
  text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  if (!text.starts_with(kSeq) || !text.ends_with(kEnd) || text.size() < kFrame / 2) return tail;
  const char* rest = std::from_chars(text.data() + kSeq.size(), text.data() + text.size(), tail.count).ptr;
  tm parts{};
  if (::strptime(rest, ",\"time\":\"%Y-%m-%dT%H:%M:%S", &parts) != nullptr)
    tail.time_ns = std::int64_t{::timegm(&parts)} * 1'000'000'000;
  tail.head = text.substr(text.size() - kEnd.size() - 64, 64);
  return tail;
}

}  // namespace caisson::audit
