#include "launcher/cli/audit/stats.h"

#include <algorithm>

#include "launcher/common/audit_lines/lines.h"
#include "launcher/common/tables/fields.h"

namespace caisson::audit {

void Stats::count(Counts& counts, const std::string& name, std::uint64_t n) {
  counts[counts.size() < kMaxNames || counts.contains(name) ? name : "other"] += n;
}

void Stats::add(const json::Value& record, std::size_t bytes) {
  const std::string event = json::text_of(record, "event");
  ++records_;
  bytes_ += bytes;
  count(events_, event);
  if (event == "denial") count(denials_, json::text_of(record, "syscall"), count_of(record, "count", 1));
  if (event == "limit_hit") count(limits_, json::text_of(record, "limit"));
  if (event == "session_end") count(ends_, json::text_of(record, "reason"));
  if (event == "segment_start") spilled_ += count_of(record, "spilled", 0);
  // The last such record covers what went before.
  if (event == "segment_removed")
    removed_ =
        count_of(record, "last_seq", 0) + 1 - std::min(count_of(record, "first_seq", 0), count_of(record, "last_seq", 0) + 1);
  if (event != "exec_exit") return;
  if (const std::string signal = json::text_of(record, "signal"); !signal.empty()) count(signals_, signal);
  else count(exit_codes_, std::to_string(count_of(record, "exit_code", 0)));
  if (const std::string limit = json::text_of(record, "limit"); !limit.empty()) count(limits_, limit);
}

void Stats::add(const Stats& other) {
  records_ += other.records_, bytes_ += other.bytes_, removed_ += other.removed_, spilled_ += other.spilled_;
  for (const auto member :
       {&Stats::events_, &Stats::denials_, &Stats::exit_codes_, &Stats::signals_, &Stats::limits_, &Stats::ends_})
    for (const auto& [name, n] : other.*member) count(this->*member, name, n);
}

json::Value Stats::to_json() const {
  const auto it = events_.find("exec_start");
  return {{"records", records_},
          {"bytes", bytes_},
          {"removed", removed_},
          {"spilled", spilled_},
          {"execs", it == events_.end() ? 0 : it->second},
          {"events", events_},
          {"denials", denials_},
          {"exit_codes", exit_codes_},
          {"signals", signals_},
          {"limits", limits_},
          {"ends", ends_}};
}

}  // namespace caisson::audit
