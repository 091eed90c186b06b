// Responses of /v1/audit. AIO has no such routes; the names are ours.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/routes/end_types.h"

namespace caisson::routes {

struct AuditSession {
  std::string id, domain, workspace, label, state;
  std::optional<std::string> started, ended, reason;
  std::int64_t records = 0;
  std::optional<std::int64_t> denials;
  std::int64_t bytes = 0;
  std::string head;
  std::optional<bridge::End> end;
};
struct AuditSessions {
  std::vector<AuditSession> sessions;
  std::optional<std::string> next;
};
struct AuditRecords {
  AuditSession session;
  std::vector<json::Value> records;
  std::optional<std::int64_t> next;
};

template <>
struct Schema<AuditSession> {
  static constexpr std::string_view name = "AuditSession";
  static constexpr auto fields =
      std::tuple{field("id", &AuditSession::id, "The launcher's id of the session; ids sort by the second of their start"),
                 field("domain", &AuditSession::domain, "Policy domain"),
                 field("workspace", &AuditSession::workspace, "Workspace of the session"),
                 field("label", &AuditSession::label, "The client's name for it"),
                 field("state", &AuditSession::state, "running or ended"),
                 field("started", &AuditSession::started, "When it was asked for").format("date-time"),
                 field("ended", &AuditSession::ended, "Time of its end; null: no end is on record").format("date-time"),
                 field("reason", &AuditSession::reason, "Why it ended; null: no end is on record"),
                 field("records", &AuditSession::records, "Number of the last record so far"),
                 field("denials", &AuditSession::denials, "Refused calls, where they are counted"),
                 field("bytes", &AuditSession::bytes, "Size of the log"),
                 field("head", &AuditSession::head, "Hash of the last record: the chain's head"),
                 field("end", &AuditSession::end, "The same for programs, with the limit; null: no end is on record")};
};
template <>
struct Schema<AuditSessions> {
  static constexpr std::string_view name = "AuditSessions";
  static constexpr auto fields = std::tuple{field("sessions", &AuditSessions::sessions, "The newest first"),
                                            field("next", &AuditSessions::next, "Pass it as `after` for the next page")};
};
template <>
struct Schema<AuditRecords> {
  static constexpr std::string_view name = "AuditRecords";
  static constexpr auto fields =
      std::tuple{field("session", &AuditRecords::session, "The session of the log"),
                 field("records", &AuditRecords::records, "In the order of their numbers; may be empty when `next` is not null"),
                 field("next", &AuditRecords::next, "Pass it as `after_seq` for the next records; null: there are none now")};
};

}  // namespace caisson::routes
