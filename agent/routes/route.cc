#include "agent/routes/route.h"

namespace caisson::routes {

std::string_view scope_name(Scope scope) {
  switch (scope) {
    case Scope::system:
      return "system";
    case Scope::sandbox:
      return "sandbox";
    case Scope::bash:
      return "bash";
    case Scope::jupyter:
      return "jupyter";
    case Scope::nodejs:
      return "nodejs";
    case Scope::code:
      return "code";
    case Scope::workspaces:
      return "workspaces";
    case Scope::shell:
      return "shell";
    case Scope::file:
      return "file";
    case Scope::file_watch:
      return "file-watch";
    case Scope::audit:
      return "audit";
  }
  return "system";
}

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
