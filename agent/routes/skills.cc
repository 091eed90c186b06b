// /v1/skills. Decisions where the contract is silent:
// - a form has `file` (a zip archive or a SKILL.md) or `path` (in the workspace), not both; an empty file counts as none, because
//   the Python SDK has no way to leave it out. All skills of an archive are registered, or none.
// - a name is that of the form, of the front matter, or of the folder or file, in this order. A skill of the same name is
// replaced:
//   clients register theirs at each start.
// - commands are those in `dependency_commands` of the front matter, `pip install -r requirements.txt` and `npm install`, where
//   the skill has these files. That one fails does not undo the registration.
#include <map>

#include "agent/http/multipart.h"
#include "agent/routes/skills_types.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using services::Skill;
using services::Skills;
using services::SkillSource;

constexpr std::size_t kMostText = 4096;                        // of path and name
constexpr std::size_t kFormRoom = 64 * 1024;                   // of its other parts
constexpr std::size_t kHeldUploads = 2 * Skills::kMostUpload;  // as a file, and on its way into the session

json::Value describe_skill_form(Components& components) {
  json::Value& form = components["Body_register_skills"];
  const auto part = [](const char* title, const char* doc, bool bytes) {
    json::Value text = {{"type", "string"}};
    if (bytes) text["format"] = "binary";
    json::Value out = {{"title", title}, {"description", doc}};
    out["anyOf"] = json::Value::array({std::move(text), {{"type", "null"}}});
    return out;
  };
  form = {{"type", "object"}, {"title", "Body_register_skills"}};
  form["properties"]["file"] = part("File", "A zip archive with one or more skills, or a SKILL.md", true);
  form["properties"]["path"] = part("Path", "Instead: a folder or file in the workspace", false);
  form["properties"]["name"] = part("Name", "Name of the skill, if there is only one", false);
  return {{"$ref", "#/components/schemas/Body_register_skills"}};
}

// A part of the form on its way into the source. invalid_argument: it is too long.
Status take_part(SkillSource& source, const std::string& field, std::string_view data) {
  if (field == "file") {
    if (source.bytes.size() + data.size() > Skills::kMostUpload)
      return fail(Code::invalid_argument, "the file is larger than " + std::to_string(Skills::kMostUpload) + " bytes");
    source.bytes += data;
  } else if (field == "path" || field == "name") {
    std::string& text = field == "path" ? source.path : source.name;
    if (text.size() + data.size() > kMostText) return fail(Code::invalid_argument, field + " is too long");
    text += data;
  }
  return {};
}

task<SkillSource> take_skill_form(Call& call, const std::string& boundary) {
  SkillSource source;
  http::Multipart form(boundary);
  std::string field;
  while (true) {
    CO_TRY_ASSIGN(const std::string piece, co_await call.writer->read_piece());
    if (piece.empty()) co_return fail(Code::invalid_argument, "malformed multipart body: it ends too early");
    form.feed(piece);
    while (true) {
      CO_TRY_ASSIGN(auto event, form.next());
      if (!event) break;
      if (event->kind == http::Multipart::Kind::done) co_return source;
      if (event->kind == http::Multipart::Kind::begin) {
        field = event->name;
        if (field == "file") source.filename = event->filename.value_or("").substr(0, kMostText);
      } else if (event->kind == http::Multipart::Kind::data) {
        CO_TRY(take_part(source, field, event->data));
      }
    }
  }
}

task<http::Response> register_skills(Call call) {
  SkillSource source;
  if (const auto boundary = http::multipart_boundary(call.request.header("content-type").value_or(""))) {
    CO_TRY(co_await call.writer->reserve(kHeldUploads));
    CO_TRY_ASSIGN(source, co_await take_skill_form(call, *boundary));
  }
  if (source.bytes.empty() && source.path.empty())
    co_return http::fail("Nothing to register: give a file (a zip archive or a SKILL.md) or a path, as multipart/form-data");
  if (!source.bytes.empty() && !source.path.empty())
    co_return http::fail("Give a file or a path, not both: which of them is meant?");
  SkillRegistrationResult result;
  CO_TRY_ASSIGN(result.registered, co_await call.services.workspace->skills.add(std::move(source)));
  result.count = static_cast<std::int64_t>(result.registered.size());
  bool failed = false;
  for (const Skill& skill : result.registered)
    for (const services::DependencyResult& one : skill.dependencies) failed = failed || !one.success;
  std::optional<std::string> hint;
  if (failed) hint = "The skills are registered, but a command for what they need failed: see dependency_commands";
  co_return http::ok(encode(result), "Operation successful", hint);
}

std::vector<std::string> names_asked_for(const http::Request& request) {
  std::vector<std::string> out;
  std::string_view list = request.query_value("names").value_or("");
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) out.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return out;
}

task<http::Response> list_skills(Call call) {
  CO_TRY_ASSIGN(services::SkillList list, co_await call.services.workspace->skills.list(names_asked_for(call.request)));
  std::optional<std::string> hint;
  if (!list.problems.empty()) hint = "Left out, because they cannot be read: " + list.problems;
  SkillMetadataCollection out{std::move(list.skills)};
  co_return http::ok(encode(out), "Operation successful", hint);
}

task<http::Response> skill_content(Call call) {
  std::string name(call.request.param("name"));
  CO_TRY_ASSIGN(const services::SkillContent content, co_await call.services.workspace->skills.content(std::move(name)));
  co_return http::ok(encode(content));
}

task<http::Response> delete_skill(Call call) {
  std::string name(call.request.param("name"));
  CO_TRY_ASSIGN(const Skill skill, co_await call.services.workspace->skills.remove(std::move(name)));
  co_return http::ok(encode(skill), "Skill deleted");
}

task<http::Response> clear_skills(Call call) {
  CO_TRY_ASSIGN(const std::vector<std::string> names, co_await call.services.workspace->skills.clear());
  json::Value data = json::Value::object();
  data["deleted"] = names;
  co_return http::ok(std::move(data), "Skills deleted");
}

constexpr Endpoint register_endpoint() {
  Endpoint out = bind<register_skills, SkillRegistrationResult>();
  out.describe_body = describe_skill_form;
  return out;
}

using http::Method;

constexpr Parameter kNames[] = {{"names", "string", "Names, separated by commas; without it, all", false, {}, "null"}};

constexpr Route kSkills[] = {
    {Method::post, "/v1/skills/register", "register_skills", Scope::skills, kStreamedBody, Unknown::ignore, "Register skills",
     register_endpoint(), Skills::kMostUpload + kFormRoom},
    {Method::get, "/v1/skills/metadatas", "list_skills_metadata", Scope::skills, kNone, Unknown::ignore,
     "The skills and what they say of themselves", bind<list_skills, SkillMetadataCollection>(), kDefaultBodyLimit, kNames},
    {Method::del, "/v1/skills", "clear_skills", Scope::skills, kNone, Unknown::ignore, "Delete all skills",
     bind<clear_skills, std::map<std::string, std::vector<std::string>>>()},
    {Method::del, "/v1/skills/{name}", "delete_skill", Scope::skills, kNone, Unknown::ignore, "Delete a skill",
     bind<delete_skill, Skill>()},
    {Method::get, "/v1/skills/{name}/content", "get_skill_content", Scope::skills, kNone, Unknown::ignore,
     "The instructions of a skill", bind<skill_content, services::SkillContent>()},
};

}  // namespace

Area skill_routes() { return kSkills; }

}  // namespace caisson::routes
