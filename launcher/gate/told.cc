// What door, dialer and opener tell of what goes out: on record within a budget, counted (figures.h), and the last of it kept
// (recent.h). Whoever takes one of them over speaks in its name, so what is an alarm is decided here.
#include <algorithm>
#include <utility>
#include <variant>

#include "launcher/common/base/sys.h"
#include "launcher/common/telling/json_text.h"
#include "launcher/gate/gate.h"
#include "launcher/gate/own_port.h"

namespace caisson::gate {
namespace {

using egress::Refusal;

constexpr std::int64_t kCountedUs = 1'000'000;
constexpr json::Bounds kRecord{.max_bytes = egress::kMaxText, .max_depth = 4, .max_values = 256};
// The log's own, which it refuses; two that would count as refused system calls; and what we say ourselves.
constexpr const char* kNotTheirs[] = {"seq",     "time",  "mono_us", "event", "prev", "hash", "calls",
                                      "syscall", "alarm", "asked",   "ask",   "by",   "who"};

json::Value object_of(std::string_view text) {
  auto record = json::parse(text, kRecord);
  return record && record->is_object() ? std::move(*record) : json::Value{{"malformed", true}};
}

Refusal refusal_of(const json::Value& record) {
  constexpr std::string_view kNames = words(Refusal{});
  const auto said = json::get_string(record, "refusal");
  for (std::size_t i = 1; said && *said && std::cmp_less(i, count_words(kNames)); ++i)
    if (word(kNames, i) == **said) return static_cast<Refusal>(i);
  return Refusal::none;
}

bool at_own_port(const json::Value& record) {
  const auto address = json::get_string(record, "address");
  const auto port = json::get_int(record, "port");
  if (!address || !*address || !port || !*port || **port < 1 || **port > 65535) return false;
  const auto host = egress::read_host(**address);
  const auto* read = host ? std::get_if<egress::Address>(&*host) : nullptr;
  return read != nullptr && is_own_port(*read, static_cast<std::uint16_t>(**port));
}

}  // namespace

void Gate::heard_figures(std::uint64_t workspace, egress::Said said, std::string_view text) {
  if (said == egress::Said::figures) figures_.take(workspace, object_of(text));
  else if (said == egress::Said::dropped) figures_.take_dropped(object_of(text));
  else figures_.end(workspace);
}

void Gate::heard_record(const Service& of, const Entry& entry, egress::Said said, std::string_view text) {
  Workspace& workspace = entry->second;
  const bool in_budget = workspace.records.take(sys::monotonic_us());
  json::Value record = object_of(text);
  const bool refused = said == egress::Said::record && record.contains("refusal");
  if (said == egress::Said::record && &of == &opener_) used(entry, record);
  const Refusal refusal = refused ? refusal_of(record) : Refusal::none;
  if (refused && &of == &opener_) figures_.refused(refusal);
  const bool own_port = refused && in_budget && at_own_port(record), alarm = own_port || is_alarm(refusal);
  if (own_port && !is_alarm(refusal)) figures_.own_port();
  // A flood of other records hides no alarm.
  if (!in_budget && !(alarm && workspace.alarms.take(sys::monotonic_us()))) return count(workspace);
  for (const char* not_theirs : kNotTheirs) record.erase(not_theirs);
  record["workspace"] = workspace.name;
  if (alarm) record["alarm"] = true;
  if (own_port) record["own_port"] = true;
  // Whoever takes the door over says nothing in the name of another workspace's session.
  if (const auto session = json::get_string(record, "session"); !session || !workspace.sessions.contains(session->value_or("")))
    record.erase("session");
  if (refused) propose(workspace, record);
  if (said == egress::Said::record) workspace.recent.add(record, refused);
  const Told as = said == egress::Said::dropped ? Told::dropped : refused ? Told::refused : Told::connection;
  if (!tell(as, json::dump(record))) count(workspace);
}

void Gate::count(Workspace& workspace) {
  figures_.dropped();
  if (workspace.dropped++ == 0) tell_count_later(workspace.name);
}

void Gate::tell_count_later(const std::string& name) {
  loop_.after(kCountedUs, [this, name] {
    const auto entry = std::ranges::find(workspaces_, name, [](const auto& one) { return one.second.name; });
    if (entry == workspaces_.end()) return;
    const auto dropped = static_cast<std::int64_t>(entry->second.dropped);
    if (!tell(Told::dropped, JsonText().string("workspace", name).number("count", dropped).text())) return tell_count_later(name);
    entry->second.dropped = 0;
  });
}

}  // namespace caisson::gate
