#include "agent/routes/route.h"

#include <algorithm>
#include <iterator>

#include "agent/http/failure.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes {

namespace {

constexpr Tag kTags[] = {
    {Scope::system, "system", "The server itself"},
    {Scope::sandbox, "sandbox", "Environment, packages, hooks, sessions, policies, observations"},
    {Scope::bash, "bash", "A process for each command, with separate streams"},
    {Scope::shell, "shell", "Commands in a terminal that keeps its state"},
    {Scope::file, "file", "Read, write, edit, search and move files"},
    {Scope::file_watch, "file-watch", "Changes of files as they happen"},
    {Scope::jupyter, "jupyter", "Python in notebook kernels"},
    {Scope::nodejs, "nodejs", "JavaScript in Node.js"},
    {Scope::code, "code", "Programs by their language"},
    {Scope::browser, "browser", "The screen, and the browser on it"},
    {Scope::proxy, "proxy", "Where what goes out goes through"},
    {Scope::operator_, "operator", "What sessions ask an operator to allow"},
    {Scope::workspaces, "workspaces", "Areas that share nothing with each other"},
    {Scope::audit, "audit", "What sessions did and what they were refused"},
    {Scope::auth, "auth", "Tickets, tokens and the logins of pages"},
    {Scope::mcp, "mcp", "Tools for agents, over MCP"},
    {Scope::util, "util", "Documents as Markdown"},
    {Scope::skills, "skills", "Instructions for agents, with what they need; registering one runs its commands"},
};
static_assert(std::size(kTags) == static_cast<std::size_t>(Scope::skills) + 1, "one for each scope");

}  // namespace

std::span<const Tag> tags() { return kTags; }
std::string_view scope_name(Scope scope) { return std::ranges::find(kTags, scope, &Tag::scope)->name; }

json::Value describe_upload(Components& components) {
  json::Value& form = components["Body_upload_file"];
  form = {{"type", "object"}, {"title", "Body_upload_file"}, {"required", json::Value::array({"file"})}};
  form["properties"]["file"] = {
      {"type", "string"}, {"format", "binary"}, {"title", "File"}, {"description", "The file; it may be larger than memory"}};
  form["properties"]["path"] = {{"anyOf", json::Value::array({{{"type", "string"}}, {{"type", "null"}}})},
                                {"title", "Path"},
                                {"description", "Where it goes"}};
  return {{"$ref", "#/components/schemas/Body_upload_file"}};
}

task<http::Lane::Turn> Call::work(std::size_t bytes) const {
  if (writer == nullptr) co_return http::Lane::Turn();
  co_return co_await writer->work(bytes);
}

task<http::Lane::Turn> Call::answer_of(std::size_t bytes, bool carried_out) const {
  if (writer == nullptr) co_return http::Lane::Turn();
  co_return co_await writer->answer_of(bytes, carried_out);
}

bool permits(const auth::Scopes& scopes, const Route& route) {
  return scopes.permits(scope_name(route.scope), only_reads(route) ? auth::Access::read : auth::Access::all);
}

http::Response to_response(Result<http::Response> result, std::string_view request_id) {
  if (result) return std::move(*result);
  if (result.error().code == Code::internal) return http::internal_failure(result.error().text(), request_id);
  return http::fail(result.error().text());
}

std::optional<std::string> taken_text(const services::Workspace& workspace) {
  const auto taken = workspace.takeover.current();
  if (!taken || !taken->exclusive) return std::nullopt;
  return "A person has the browser until " + sys::rfc3339(taken->until * 1'000'000'000) + ", and may give it back earlier";
}

// What a person types, a client must not see while it is typed, nor disturb.
std::optional<http::Response> refuse_taken(const Route& route, const services::Workspace& workspace) {
  if ((route.flags & kHands) == 0) return std::nullopt;
  auto text = taken_text(workspace);
  if (!text) return std::nullopt;
  return http::fail("A person has the browser", nullptr, std::move(text));
}

http::Response validation_response(const Issues& issues) { return http::json_response(422, {{"detail", issues.detail()}}); }

}  // namespace caisson::routes
