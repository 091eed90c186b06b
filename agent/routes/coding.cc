#include "agent/routes/coding.h"

#include "agent/http/failure.h"
#include "agent/http/target.h"
#include "agent/routes/sandbox_info.h"
#include "agent/routes/status.h"
#include "agent/services/coding/coding_settings.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using services::CodingAgent;

// What the page at /terminal takes of the address.
constexpr std::string_view kKept[] = {"api_key", "ticket", "workspace"};

std::string not_installed(const CodingAgent& agent) {
  return std::string(agent.title) + " is not installed for the sessions of this server. The image has it when it is built with " +
         std::string(agent.argument) + "=VERSION (image/README.md). One that is in a home starts at /terminal, by the name " +
         std::string(agent.name);
}

}  // namespace

http::Response coding_page(const Call& call, std::string_view name) {
  const CodingAgent* const agent = services::coding_agent(name);
  if (agent == nullptr) return http::error_response(404, "Not Found");
  if (!call.services.sandbox->coding_version(name)) {
    if (call.services.status->sessions.passed)
      return http::text_response(404, "text/plain; charset=utf-8", not_installed(*agent) + "\n");
    http::Response later = http::text_response(503, "text/plain; charset=utf-8", "The server is still starting.\n");
    later.headers = {{"retry-after", "1"}};
    return later;
  }
  std::string address = "/terminal?start=" + std::string(name);
  for (const std::string_view one : kKept)
    if (const auto value = call.request.query_value(one))
      address.append("&").append(one).append("=").append(http::percent_encoded(*value));
  http::Response there = http::text_response(307, "text/plain; charset=utf-8", "");
  there.headers = {{"location", std::move(address)}, {"referrer-policy", "no-referrer"}};
  return there;
}

task<services::ShellService::SessionPtr> start_coding(Call call, std::string name, bridge::PtySize size) {
  const CodingAgent* const agent = services::coding_agent(name);
  if (agent == nullptr) co_return fail(Code::invalid_argument, "start must be codex or opencode");
  const std::optional<std::string> version = call.services.sandbox->coding_version(name);
  if (!version) co_return fail(Code::not_found, not_installed(*agent));
  services::Workspace& workspace = *call.services.workspace;
  CO_TRY(co_await workspace.coding.prepare(name, *version));
  services::ShellService::CreateParams params{.implicit = true, .for_person = true, .size = size, .program = name};
  CO_TRY_ASSIGN(services::ShellService::SessionPtr session, co_await workspace.shell.create(std::move(params)));
  std::string line = name + "\r";
  CO_TRY(co_await services::ShellSession::type(session, std::move(line)));
  co_return session;
}

}  // namespace caisson::routes
