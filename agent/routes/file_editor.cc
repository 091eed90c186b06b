// /v1/file/str_replace_editor. The worker edits and reports in the words that clients know; an error is in `message` and in
// data.message. Decisions where the contract is silent: relative paths are accepted and start at the home; the history of a
// workspace's edits ends with its file worker.
#include "agent/routes/file_calls.h"
#include "agent/routes/table.h"
#include "agent/services/common/text.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/tables/fields.h"

namespace caisson::routes {
namespace {

constexpr FileOperation kEdit{"str_replace_editor", "Failed to edit file"};
constexpr std::size_t kEditLimit = 32 * 1024 * 1024;

// The texts one after the other, and their sizes.
std::string texts_of(StrReplaceEditorRequest& body, json::Value& sizes) {
  std::string out;
  sizes = json::Value::object();
  const auto add = [&](const char* name, const std::optional<std::string>& text) {
    if (!text) return;
    sizes[name] = text->size();
    out += *text;
  };
  add("file_text", body.file_text);
  add("old_str", body.old_str);
  add("new_str", body.new_str);
  return out;
}

// A text of the answer, taken from its bytes; nullopt: the sizes do not fit the bytes.
std::optional<std::string> text_at(const frames::Frame& reply, std::size_t index) {
  const auto sizes = reply.head.find("sizes");
  if (sizes == reply.head.end() || !sizes->is_array() || sizes->size() != 3) return std::nullopt;
  std::size_t from = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!(*sizes)[i].is_number_unsigned()) return std::nullopt;
    const auto size = (*sizes)[i].get<std::size_t>();
    if (from > reply.body.size() || size > reply.body.size() - from) return std::nullopt;
    if (i == index) return reply.body.substr(from, size);
    from += size;
  }
  return std::nullopt;
}

http::Response edit_failure(const services::FileFailure& why, const std::string& path) {
  FileOperationError error = file_error(why, kEdit, path);
  if (!why.text.empty() && why.number != EPERM) error.message = services::to_utf8(why.text);
  return file_failure(error);
}

json::Value head_of(const StrReplaceEditorRequest& body) {
  json::Value head = {{"path", body.path}, {"command", body.command}};
  if (body.insert_line) head["insert_line"] = *body.insert_line;
  if (body.view_range) head["view_range"] = *body.view_range;
  if (body.replace_mode) head["replace_mode"] = *body.replace_mode;
  if (body.page_range) head["page_range"] = *body.page_range;
  if (body.sheet_name) head["sheet_name"] = *body.sheet_name;
  if (body.row_range) head["row_range"] = *body.row_range;
  if (body.slide_range) head["slide_range"] = *body.slide_range;
  head["metadata"] = body.enable_metadata.value_or(false);
  return head;
}

task<http::Response> str_replace_editor(Call call, StrReplaceEditorRequest body) {
  json::Value head = head_of(body);
  std::string texts = texts_of(body, head["parts"]);
  auto reply = co_await call.services.workspace->file.call(frames::FileOp::edit, std::move(head), std::move(texts));
  if (!reply) co_return edit_failure(reply.error(), body.path);
  const auto output = text_at(*reply, 0), old_text = text_at(*reply, 1), new_text = text_at(*reply, 2);
  if (!output || !old_text || !new_text)
    co_return edit_failure({0, body.path, "io_error", "the file worker answered nonsense"}, body.path);
  StrReplaceEditorResult result{
      .output = *output, .path = text_in(reply->head, "path"), .prev_exist = json::flag_of(reply->head, "existed")};
  if (json::flag_of(reply->head, "has_old")) result.old_content = *old_text;
  if (json::flag_of(reply->head, "has_new")) result.new_content = *new_text;
  if (const auto facts = reply->head.find("metadata"); facts != reply->head.end() && facts->is_object())
    result.metadata = facts->get<std::map<std::string, json::Value>>();
  co_return http::ok(encode(result));
}

using http::Method;

constexpr Route kEditor[] = {
    {Method::post, "/v1/file/str_replace_editor", "str_replace_editor_v1_file_str_replace_editor_post", Scope::file, kNone,
     Unknown::ignore, "View and edit files as agents do", bind<str_replace_editor, OrFailure<StrReplaceEditorResult>>(),
     kEditLimit},
};

}  // namespace

Area file_editor_routes() { return kEditor; }

}  // namespace caisson::routes
