#include "agent/routes/route.h"

#include <algorithm>
#include <iterator>

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
};
static_assert(std::size(kTags) == static_cast<std::size_t>(Scope::auth) + 1, "one for each scope");

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

http::Response validation_response(const Issues& issues) { return http::json_response(422, {{"detail", issues.detail()}}); }

}  // namespace caisson::routes
