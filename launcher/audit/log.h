// The confinement log of one session: NDJSON, one record a line, numbered and hash-chained, appended by the launcher
// alone. Format and verification: SECURITY.md, "Audit log".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/fd.h"
#include "launcher/base/json.h"

namespace caisson::audit {

// Closed set; one table in log.cc. Wire names equal the enumerators.
enum class Event {
  boot,              // launcher.ndjson: version, tier, features, policy digests
  agent_start, agent_exit, agent_violation, agent_refused,
  session_request,   // what was asked: domain, label, narrowing; before anything is done
  session_step,      // one confinement step: mechanism, state, detail, verified facts, microseconds
  session_start,     // the session runs: tier, policy digest, report
  session_refused,   // it does not: step, errno, why
  exec_request,      // argv, cwd, names of environment variables; before the process exists
  exec_start, exec_refused,
  exec_exit,         // exit code or signal, rusage, limits hit
  exec_signal,
  limit_hit,
  session_end,       // why; totals; head of the chain
  policy_reload,
};

class Log {
 public:
  // Creates `directory`/`name`.ndjson (mode 0600, O_APPEND, O_EXCL: a log is never continued by another).
  [[nodiscard]] static Result<Log> create(const std::string& directory, const std::string& name);

  // Adds {seq, time, mono_us, event, ...fields, prev, hash}. An error means that the record is not on disk: the caller
  // must not go on with what it was about to do.
  [[nodiscard]] Status append(Event event, json::Value fields);
  [[nodiscard]] const std::string& head() const { return head_; }  // hash of the last record
  [[nodiscard]] std::uint64_t count() const { return seq_; }

 private:
  explicit Log(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
  std::uint64_t seq_ = 0;
  std::string head_ = std::string(64, '0');
};

[[nodiscard]] std::string_view event_name(Event event);

// Replaces values that look like credentials in argv and environment before they are written.
[[nodiscard]] json::Value redacted_argv(const json::Value& argv);

}  // namespace caisson::audit
