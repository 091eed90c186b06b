// The confinement log of one session: NDJSON, one record a line, numbered and hash-chained, appended by the launcher
// alone. Format and verification: SECURITY.md, "Audit log".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/fd.h"
#include "launcher/base/json.h"

namespace caisson::audit {

// Closed set; one table in log.cc. Wire names equal the enumerators.
enum class Event {
  boot,  // launcher.ndjson: version, tier, features, policy digests
  agent_start,
  agent_exit,
  agent_violation,
  client_violation,  // the same at the control socket
  request_refused,   // a well-formed request that was refused: op, why
  session_request,   // what was asked: domain, label, narrowing; before anything is done
  session_start,     // the session runs: tier, policy digest, report
  session_refused,   // it does not: step, errno, why
  exec_request,      // argv, cwd, names of environment variables; before the process exists
  exec_start,
  exec_refused,
  exec_exit,  // exit code or signal, rusage, limits hit
  exec_signal,
  limit_hit,
  session_end,  // why; totals; head of the chain
  policy_reload,
  denial,               // a system call that was refused by rule: what, by whom, how it was answered
  denials_dropped,      // refused calls that were only counted
  denial_audit_closed,  // nobody listens to this session's refused calls any more: why
  auditor_start,
  auditor_exit,
};

// Longest record, its newline included. Longer ones are cut (redact.h: fit), never refused: what a session asks for
// must not decide whether it is recorded.
inline constexpr std::size_t kMaxRecord = 64 * 1024;

// "prev" of the first record.
inline constexpr std::string_view kNoPrevious = "0000000000000000000000000000000000000000000000000000000000000000";

class Log {
 public:
  // Creates `directory`/`name`.ndjson (mode 0600, O_APPEND, O_EXCL: a log is never continued by another).
  [[nodiscard]] static Result<Log> create(const std::string& directory, const std::string& name);
  // For the launcher's own log, whose name stays the same: an earlier `name`.ndjson is first renamed to
  // `name`-<UTC time>.ndjson, so that a restart neither continues nor overwrites it.
  [[nodiscard]] static Result<Log> create_rotated(const std::string& directory, const std::string& name);

  // Adds {seq, time, mono_us, event, ...fields, prev, hash}. An error means that the record is not on disk: the caller
  // must not go on with what it was about to do; the log is then poisoned and every later append fails, too. `fields`
  // is an object without the names that the log itself writes. Durable (fdatasync) after boot.
  // The process ignores SIGXFSZ, or a file size limit kills it here instead of giving an error.
  [[nodiscard]] Status append(Event event, const json::Value& fields);
  [[nodiscard]] bool poisoned() const { return poisoned_; }
  [[nodiscard]] const std::string& head() const { return head_; }  // hash of the last record
  [[nodiscard]] std::uint64_t count() const { return seq_; }

 private:
  explicit Log(Fd fd) : fd_(std::move(fd)) {}
  [[nodiscard]] Status write_record(std::string_view line, bool durable);

  Fd fd_;
  std::uint64_t seq_ = 0;
  std::string head_{kNoPrevious};
  bool poisoned_ = false;
};

[[nodiscard]] std::string_view event_name(Event event);
[[nodiscard]] std::optional<Event> event_from(std::string_view name);

// Replaces values that look like credentials in an argv (array of strings) before it is written. More: redact.h.
[[nodiscard]] json::Value redacted_argv(const json::Value& argv);

}  // namespace caisson::audit
