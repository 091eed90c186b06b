// A session in the table, with what the launcher knows of it besides: its workspace, its client, its log.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/pid1/session/session.h"
#include "launcher/pid1/session/workspace.h"

namespace caisson::session {

// Of a command that outlives who asked for it: our copies of the client's ends, by name; how it ended, once it has.
struct Kept {
  std::map<std::string, Fd> ends;
  json::Value exit;
};

struct Entry {
  std::unique_ptr<Session> session;
  bool keep = false;                 // it outlives its client, where that is the agent
  std::map<std::string, Kept> kept;  // by the command's label
  std::unique_ptr<audit::Log> log;
  Workspace* workspace = nullptr;
  std::uint64_t owner = 0;  // number of the client's connection; 0: ready, not yet given away
  std::string domain, label, created_at, destroy_reason;
  Result<std::string> start;  // its session_start record, prepared when it was built: before somebody waits, as a rule
  json::Value denials;        // totals, once the auditor has told them
  json::Value auto_run;       // at its end: what protected names it, or others meanwhile, newly made
  confine::ProbeResults canary;
  bool unread = false;                                             // not all of its memory could be counted, at least once
  std::int64_t create_id = 0;                                      // request to be answered once it is built
  json::Value request;                                             // what was asked, for the log
  std::map<std::uint32_t, std::int64_t> exec_ids;                  // exec -> request to be answered
  std::vector<std::pair<std::uint64_t, std::int64_t>> destroyers;  // connection and request to be answered at the end
  Loop::TimerId life = 0;
};

}  // namespace caisson::session
