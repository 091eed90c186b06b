// Requests and answers of /v1/sandbox/hooks, by the contract's names.
#pragma once

#include "agent/routes/end_types.h"
#include "agent/services/workspace/hooks.h"

namespace caisson::routes {

struct RegisterHook {
  std::string name;
  std::string event = "shutdown";
  std::string command;
  double timeout = 10;
  std::int64_t priority = 100;
};

template <>
struct Schema<RegisterHook> {
  static constexpr std::string_view name = "RegisterHookRequest";
  static constexpr auto fields = std::tuple{
      field("name", &RegisterHook::name, "Unique name: letters, digits, '_' and '-'").max_length(64).pattern("^[a-zA-Z0-9_-]+$"),
      field("event", &RegisterHook::event, "When it runs: shutdown").defaulted(),
      field("command", &RegisterHook::command, "Shell command, run in a session of domain bash").max_length(4096),
      field("timeout", &RegisterHook::timeout, "Seconds after which it is killed; at most 3600")
          .min(0.001)
          .max(3600)
          .unlisted()
          .defaulted(),
      field("priority", &RegisterHook::priority, "Lower ones run earlier, equal ones side by side").defaulted()};
};
template <>
struct Schema<services::Hook> {
  static constexpr std::string_view name = "SandboxHook";
  static constexpr auto fields =
      std::tuple{field("name", &services::Hook::name, "Unique name"),
                 field("event", &services::Hook::event, "When it runs").defaulted(),
                 field("command", &services::Hook::command, "Shell command; only its beginning if it is long").max_length(4096),
                 field("timeout", &services::Hook::timeout, "Seconds after which it is killed").defaulted(),
                 field("priority", &services::Hook::priority, "Lower ones run earlier").defaulted(),
                 field("source", &services::Hook::source, "Where it was set: env or api").defaulted(),
                 field("end", &services::Hook::end, "How its last run ended; null: it has not run")};
};

}  // namespace caisson::routes
