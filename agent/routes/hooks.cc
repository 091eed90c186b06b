// /v1/sandbox/hooks: commands for the end of the request's workspace. The operator's hooks are listed with their event (init,
// pre_services, post_ready) and cannot be changed here. Hooks of clients outlive the agent.
#include <algorithm>

#include "agent/routes/hooks_types.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using services::Hook;
using services::Hooks;

constexpr std::size_t kShown = 4096;

Hook shown(Hook hook) {
  if (hook.command.size() > kShown) hook.command = hook.command.substr(0, kShown);
  return hook;
}

std::optional<std::string> hint_of(const Hooks& hooks) {
  const std::string failures = hooks.failures();
  return failures.empty() ? std::nullopt : std::optional("failed: " + failures);
}

task<http::Response> register_hook(Call call, RegisterHook body) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  Issues issues;
  if (body.name.empty() || !std::ranges::all_of(body.name, plain))
    issues.add(json::Value::array({"body", "name"}), "string_pattern_mismatch", "String should match pattern '^[a-zA-Z0-9_-]+$'");
  if (body.command.contains('\0'))
    issues.add(json::Value::array({"body", "command"}), "value_error", "Value error, a command holds no NUL byte");
  if (!issues.empty()) co_return validation_response(issues);
  if (body.event != Hooks::kShutdown)
    co_return http::fail("event " + quote(body.event) + " is not supported; available: shutdown");
  Hook hook{.name = std::move(body.name),
            .event = std::move(body.event),
            .command = std::move(body.command),
            .timeout = body.timeout,
            .priority = body.priority};
  json::Value data = encode(hook);
  data.erase("end");  // it has not run
  CO_TRY(call.services.workspace->hooks.add(std::move(hook)));
  co_return http::ok(std::move(data), "Hook registered");
}

task<http::Response> list_hooks(Call call) {
  const std::string event(call.request.query_value("event").value_or(Hooks::kShutdown));
  std::vector<Hook> out;
  for (Hook& hook : call.services.workspace->hooks.list(event)) out.push_back(shown(std::move(hook)));
  co_return http::ok(encode(out), "Operation successful", hint_of(call.services.workspace->hooks));
}

task<http::Response> remove_hook(Call call) {
  const Status removed = call.services.workspace->hooks.remove(std::string(call.request.param("name")));
  if (!removed && removed.error().code == Code::not_found) co_return http::error_response(404, "Hook not found");
  CO_TRY(removed);
  co_return http::ok(nullptr, "Hook removed");
}

constexpr Parameter kListQuery[] = {{"event", "string", "shutdown, init, pre_services or post_ready", false, {}, "\"shutdown\""}};

constexpr Route kHooks[] = {
    {http::Method::post, "/v1/sandbox/hooks", "register_hook_v1_sandbox_hooks_post", Scope::sandbox, kNone, Unknown::ignore,
     "Register a command for the end of the workspace", bind<register_hook, Hook>(), 64 * 1024},
    {http::Method::get, "/v1/sandbox/hooks", "list_hooks_v1_sandbox_hooks_get", Scope::sandbox, kNone, Unknown::ignore,
     "List the hooks of an event", bind<list_hooks, std::vector<Hook>>(), kDefaultBodyLimit, kListQuery},
    {http::Method::del, "/v1/sandbox/hooks/{name}", "remove_hook_v1_sandbox_hooks__name__delete", Scope::sandbox, kNone,
     Unknown::ignore, "Remove a hook that was registered here", bind<remove_hook>()},
};

}  // namespace

Area hook_routes() { return kHooks; }

}  // namespace caisson::routes
