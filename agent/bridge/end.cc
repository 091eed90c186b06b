#include "agent/bridge/end.h"

#include <algorithm>

#include "launcher/common/tables/fields.h"

namespace caisson::bridge {
namespace {

struct Row {
  std::string_view word, reason, limit;
};
constexpr Row kWords[] = {
    // how a command ended
    {"exit", "exit", ""},
    {"signal", "signal", ""},
    {"SIGSYS", "policy", "seccomp"},
    {"hard_timeout", "time", "hard_timeout_ms"},
    {"cpu_seconds", "cpu", "cpu_seconds"},
    {"file_size_bytes", "disk", "file_size_bytes"},
    // what ends a session: its limits,
    {"oom", "oom", "memory_bytes"},
    {"memory", "oom", "memory_bytes"},
    {"processes", "pids", "processes"},
    {"disk", "disk", "disk_bytes"},
    {"session_seconds", "time", "session_seconds"},
    {"output", "output", "frame_bytes"},
    {"idle", "idle", "idle_seconds"},
    // a program in it,
    {"init_died", "signal", ""},
    // the launcher, because a wall or a record of it does not hold,
    {"init_protocol", "policy", ""},
    {"init_hung", "policy", ""},
    {"build_failed", "policy", ""},
    {"refused", "policy", ""},
    {"verification_failed", "policy", ""},
    {"uncovered", "policy", ""},
    {"audit_failed", "policy", ""},
    {"auditor_died", "policy", ""},
    {"observer_died", "policy", ""},
    {"grants_changed", "policy", ""},
    {"policy_reload", "policy", ""},
    // or a request to end it.
    {"workspace_end", "agent", ""},
    {"destroyed", "agent", ""},
    {"client_gone", "agent", ""},
    {"agent_restart", "agent", ""},
    {"shutdown", "shutdown", ""},
};

void take_figures(const json::Value& event, End& end) {
  const auto hit = event.find("hit");
  if (hit == event.end() || !hit->is_object()) return;
  if (std::string name = json::text_of(*hit, "limit"); !name.empty()) end.limit = std::move(name);
  end.allowed = json::number_of(*hit, "allowed");
  end.figure = json::number_of(*hit, "figure");
}

}  // namespace

End end_of(std::string_view word) {
  const auto row = std::ranges::find(kWords, word, &Row::word);
  End end{.reason = std::string(row == std::end(kWords) ? "agent" : row->reason)};
  if (row != std::end(kWords) && !row->limit.empty()) end.limit = std::string(row->limit);
  if (!word.empty() && word != end.reason) end.cause = std::string(word);
  return end;
}

End exit_end(int exit_code) {
  End end = end_of("exit");
  end.figure = exit_code;
  return end;
}

End time_end(std::string limit, std::int64_t allowed, std::int64_t figure) {
  return {.reason = "time", .limit = std::move(limit), .allowed = allowed, .figure = std::max(allowed, figure)};
}

End session_end(const json::Value& event) {
  const std::string reason = json::text_of(event, "reason"), asked = json::text_of(event, "asked_because");
  End end = end_of(reason == "destroyed" && !asked.empty() ? asked : reason);
  take_figures(event, end);
  return end;
}

End exec_end(const json::Value& event, std::int64_t hard_timeout_ms) {
  std::string word = json::text_of(event, "reason");
  const std::string signal = json::text_of(event, "signal"), limit = json::text_of(event, "limit");
  const std::string of_session = json::text_of(event, "session_reason");
  // While a session is being ended, each tier reports the ends of its commands in words of its own.
  const bool with_it = !of_session.empty() && (word != "exit" && word != "hard_timeout");
  if (with_it) word = of_session;
  else if (word == "signal" && signal == "SIGSYS") word = signal;
  else if (word == "signal" && !limit.empty()) word = limit;
  End end = end_of(word);
  take_figures(event, end);
  if (!signal.empty()) end.signal = signal;
  if (end.reason == "exit") end.figure = json::number_of(event, "exit_code");
  if (word == "hard_timeout") {
    end.allowed = hard_timeout_ms;
    end.figure = json::number_of(event, "wall_us").value_or(0) / 1000;
  } else if (word == limit && !limit.empty()) {
    end.allowed = json::number_of(event, "allowed");
    const auto used = event.find("rusage");
    if (end.reason == "cpu" && used != event.end())
      end.figure = (json::number_of(*used, "user_us").value_or(0) + json::number_of(*used, "sys_us").value_or(0) + 500'000) /
                   1'000'000;  // the kernel's clock for the limit is a little ahead of its account
  }
  return end;
}

json::Value kept_end(const End& end) {
  json::Value out{{"reason", end.reason}};
  if (end.limit) out["limit"] = *end.limit;
  if (end.allowed) out["allowed"] = *end.allowed;
  if (end.figure) out["figure"] = *end.figure;
  if (end.signal) out["signal"] = *end.signal;
  if (end.cause) out["cause"] = *end.cause;
  return out;
}

End end_from(const json::Value& kept) {
  const auto text = [&](const char* key) {
    std::string value = kept.is_object() ? json::text_of(kept, key) : "";
    return value.empty() ? std::nullopt : std::optional(std::move(value));
  };
  End end = end_of("agent_restart");
  const auto reason = text("reason");
  if (!reason || std::ranges::find(kEndReasons, *reason) == kEndReasons.end()) return end;
  end = {.reason = *reason, .limit = text("limit"), .signal = text("signal"), .cause = text("cause")};
  end.allowed = json::number_of(kept, "allowed");
  end.figure = json::number_of(kept, "figure");
  return end;
}

}  // namespace caisson::bridge
