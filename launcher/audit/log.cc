#include "launcher/audit/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "launcher/audit/redact.h"
#include "launcher/base/hash.h"
#include "launcher/base/sys.h"

namespace caisson::audit {
namespace {

struct EventRow {
  Event event;
  std::string_view name;
  bool durable;  // on disk before append returns. The rest is in the page cache then: a power cut may take it, a crash not
};
constexpr EventRow kEvents[] = {
    {Event::boot, "boot", true},
    {Event::agent_start, "agent_start", false},
    {Event::agent_exit, "agent_exit", false},
    {Event::agent_violation, "agent_violation", false},
    {Event::client_violation, "client_violation", false},
    {Event::request_refused, "request_refused", false},
    {Event::session_request, "session_request", false},
    {Event::session_start, "session_start", false},
    {Event::session_refused, "session_refused", false},
    {Event::exec_request, "exec_request", false},
    {Event::exec_start, "exec_start", false},
    {Event::exec_refused, "exec_refused", false},
    {Event::exec_exit, "exec_exit", false},
    {Event::exec_signal, "exec_signal", false},
    {Event::limit_hit, "limit_hit", false},
    {Event::session_end, "session_end", false},
    {Event::policy_reload, "policy_reload", false},
    {Event::denial, "denial", false},
    {Event::denials_dropped, "denials_dropped", false},
    {Event::denial_audit_closed, "denial_audit_closed", false},
    {Event::auditor_start, "auditor_start", false},
    {Event::auditor_exit, "auditor_exit", false},
};
constexpr std::string_view kReserved[] = {"seq", "time", "mono_us", "event", "prev", "hash"};

const EventRow& row(Event event) {
  for (const EventRow& r : kEvents)
    if (r.event == event) return r;
  return kEvents[0];
}

// Ids are the launcher's own, but a file name is checked where it becomes one.
bool plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && name.front() != '.' && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

Result<Fd> open_directory(const std::string& directory, const std::string& name) {
  if (!plain_name(name)) return fail(Code::invalid_argument, "audit log name " + quote(name));
  return sys::open(directory, O_RDONLY | O_DIRECTORY);
}

}  // namespace

std::string_view event_name(Event event) { return row(event).name; }

std::optional<Event> event_from(std::string_view name) {
  for (const EventRow& r : kEvents)
    if (r.name == name) return r.event;
  return std::nullopt;
}

Result<Log> Log::create(const std::string& directory, const std::string& name) {
  TRY_ASSIGN(const Fd dir, open_directory(directory, name));
  TRY_ASSIGN(Fd fd, sys::openat(dir.get(), name + ".ndjson", O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0600));
  return Log(std::move(fd));
}

Result<Log> Log::create_rotated(const std::string& directory, const std::string& name) {
  TRY_ASSIGN(const Fd dir, open_directory(directory, name));
  struct stat before{};
  if (::fstatat(dir.get(), (name + ".ndjson").c_str(), &before, AT_SYMLINK_NOFOLLOW) == 0) {
    std::string stamp = sys::rfc3339(std::int64_t{before.st_mtim.tv_sec} * 1'000'000'000 + before.st_mtim.tv_nsec);
    std::erase_if(stamp, [](char c) { return c == '-' || c == ':' || c == '.'; });
    const std::string old = name + "-" + stamp + ".ndjson";
    // RENAME_NOREPLACE: no earlier log is ever overwritten.
    if (::renameat2(dir.get(), (name + ".ndjson").c_str(), dir.get(), old.c_str(), RENAME_NOREPLACE) != 0)
      return sys_error("rename " + quote(name + ".ndjson") + " to " + quote(old));
  }
  return create(directory, name);
}

Status Log::append(Event event, const json::Value& fields) {
  if (poisoned_) return fail(Code::io, "audit log is poisoned: an earlier record could not be written");
  if (!fields.is_object() && !fields.is_null()) return fail(Code::internal, "audit fields are not an object");
  for (const std::string_view name : kReserved)
    if (fields.contains(name)) return fail(Code::internal, "audit field " + quote(name) + " is reserved");

  std::string line = "{\"seq\":" + std::to_string(seq_ + 1) + ",\"time\":\"" + sys::rfc3339(sys::realtime_ns()) +
                     "\",\"mono_us\":" + std::to_string(sys::monotonic_us()) + ",\"event\":\"";
  line.append(event_name(event)).append("\"");
  static constexpr std::size_t kChain = sizeof(R"(,"prev":"","hash":""}.)") + 2 * 64;
  const std::string members = fit(fields, kMaxRecord - line.size() - kChain);
  if (members.size() > 2) line.append(",").append(members, 1, members.size() - 2);
  line.append(",\"prev\":\"").append(head_).append("\"}");
  std::string hash = sha256_hex(line);
  line.pop_back();
  line.append(",\"hash\":\"").append(hash).append("\"}\n");

  TRY(write_record(line, row(event).durable));
  head_ = std::move(hash);
  ++seq_;
  return {};
}

// One write(2) to an O_APPEND descriptor: a record lies in the file whole or, after an error, cut at the very end, where
// verify reports it. Nothing is taken back: an audit log only grows.
Status Log::write_record(std::string_view line, bool durable) {
  ssize_t n;
  do n = ::write(fd_.get(), line.data(), line.size());
  while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(line.size()) && (!durable || ::fdatasync(fd_.get()) == 0)) return {};
  const int sys = n < 0 || n == static_cast<ssize_t>(line.size()) ? errno : ENOSPC;  // a short write has no errno
  poisoned_ = true;
  return sys_error("write audit record " + std::to_string(seq_ + 1), sys);
}

}  // namespace caisson::audit
