// What an audit log records. Which members each event has: launcher/common/audit/README.md.
#pragma once

#include <cstddef>
#include <string_view>

#include "launcher/common/base/word.h"

namespace caisson::audit {

// Closed set; a name in kEventNames for each. Wire names equal the enumerators.
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
  exec_request,      // argv, cwd, names of environment variables; before the program runs
  exec_start,
  exec_refused,
  exec_exit,  // exit code or signal, rusage, limits hit
  exec_signal,
  note,  // the agent's word about a session: what it was asked for and answered. The launcher has seen nothing of it
  limit_hit,
  session_end,  // why; totals; head of the chain
  policy_reload,
  workspace_create,  // name, uid, limits
  workspace_end,     // why; what its home held
  workspace_pause,   // nothing in it runs any more
  workspace_resume,
  segment_end,          // of a file; the next one goes on
  segment_start,        // which segment; what was spilled before it
  segment_removed,      // of this log, for room: which records, and the hash of the last one. Before the file goes
  log_deleted,          // launcher.ndjson: a log of an ended session, for its age or for room. Before the files go
  log_root,             // launcher.ndjson: a session_end of an earlier launcher's log that goes, for a session's log that stays
  denial,               // a system call that was refused by rule: what, by whom, how it was answered
  denials_dropped,      // refused calls that were only counted
  denial_audit_closed,  // this session's refused calls are no longer recorded: why
  path_refusal,         // a path that the walls refuse as far as its name tells: advisory, never a wall
  auditor_start,
  auditor_exit,
  courier_start,
  courier_exit,
  egress_connection,  // launcher.ndjson and its session's log: a connection that went out and has ended: workspace, host,
                      // address, bytes, rule
  egress_refused,     // one that did not, or a question about a name: why
  egress_dropped,     // those that were only counted
  egress_start,       // of gate, door and dialer; or a workspace got its way out
  egress_exit,        // the last one. Of these; or why a workspace has no way out any more
};

// In the order of the enumerators, a space between each.
inline constexpr std::string_view kEventNames =
    "boot agent_start agent_exit agent_violation client_violation request_refused session_request session_start "
    "session_refused exec_request exec_start exec_refused exec_exit exec_signal note limit_hit session_end policy_reload "
    "workspace_create workspace_end workspace_pause workspace_resume segment_end segment_start segment_removed log_deleted "
    "log_root denial denials_dropped denial_audit_closed path_refusal auditor_start auditor_exit courier_start courier_exit "
    "egress_connection egress_refused egress_dropped egress_start egress_exit";
static_assert(count_words(kEventNames) == static_cast<int>(Event::egress_exit) + 1);

[[nodiscard]] constexpr std::string_view event_name(Event event) { return word(kEventNames, static_cast<std::size_t>(event)); }

}  // namespace caisson::audit
