// /v1/file: the content of a file. A failing operation is 200 with success:false and a FileOperationError; only a download uses
// HTTP's codes. Decisions where the contract is silent:
// - relative paths start at the home; write and upload make missing directories; replace with nothing to replace succeeds with 0.
// - read with lines gives them without the last one's line break, and counts negative numbers from the end, as Python's slices
//   do.
// - sudo: true is refused for every path: sessions have no root.
#include <algorithm>

#include "agent/frames/base64.h"
#include "agent/routes/file_calls.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

constexpr std::size_t kWriteLimit = 32 * 1024 * 1024;

json::Value located(const std::string& path) {
  json::Value head = json::Value::object();
  head["path"] = path;
  return head;
}

constexpr FileOperation kRead{"read", "Failed to read file"};
constexpr FileOperation kWrite{"write", "Failed to write file"};
constexpr FileOperation kReplace{"replace", "Failed to replace in file"};

task<http::Response> read_file(Call call, FileReadRequest body) {
  if (body.sudo.value_or(false)) co_return answer_failure(sudo_refused(body.file), kRead, body.file);
  json::Value head = located(body.file);
  if (body.start_line) head["start"] = *body.start_line;
  if (body.end_line) head["end"] = *body.end_line;
  auto reply = co_await call.services.workspace->file.call(frames::FileOp::read, std::move(head));
  if (!reply) co_return answer_failure(reply.error(), kRead, body.file);
  std::string path = text_in(reply->head, "path");
  if (const auto broken = services::first_broken(reply->body))
    co_return answer_failure(decode_failure(*broken, reply->body, path), kRead, body.file);
  const std::string& text = reply->body;
  const auto lines = std::ranges::count(text, '\n') + (text.empty() || text.ends_with('\n') ? 0 : 1);
  FileReadResult result{.content = std::move(reply->body), .file = std::move(path)};
  json::Value data = encode(result);
  data["line_count"] = lines;  // beyond the schema, as the documentation's sample has it
  co_return http::ok(std::move(data), "File read successfully");
}

// The bytes to write, or why they cannot be decoded.
std::expected<std::string, services::FileFailure> content_of(FileWriteRequest& body) {
  const std::string& encoding = *body.encoding;
  if (encoding == "base64") {
    auto bytes = frames::base64_decode(body.content);
    if (!bytes) return std::unexpected(services::FileFailure{0, body.file, "decode_error", "content is not valid base64"});
    return std::move(*bytes);
  }
  if (encoding == "raw") {
    auto bytes = frames::latin1_encode(body.content);
    if (!bytes)
      return std::unexpected(
          services::FileFailure{0, body.file, "decode_error", "content has characters beyond U+00FF, which raw cannot write"});
    return std::move(*bytes);
  }
  std::string out = body.leading_newline.value_or(false) ? "\n" : "";
  out += body.content;
  if (body.trailing_newline.value_or(false)) out += '\n';
  return out;
}

task<http::Response> write_file(Call call, FileWriteRequest body) {
  if (body.sudo.value_or(false)) co_return answer_failure(sudo_refused(body.file), kWrite, body.file);
  auto content = content_of(body);
  if (!content) co_return answer_failure(content.error(), kWrite, body.file);
  json::Value head = located(body.file);
  head["append"] = body.append.value_or(false);
  auto reply = co_await call.services.workspace->file.call(frames::FileOp::write, std::move(head), std::move(*content));
  if (!reply) co_return answer_failure(reply.error(), kWrite, body.file);
  FileWriteResult result{.file = text_in(reply->head, "path"), .bytes_written = number_in(reply->head, "bytes_written")};
  co_return http::ok(encode(result), "File written successfully");
}

task<http::Response> replace_in_file(Call call, FileReplaceRequest body) {
  if (body.sudo.value_or(false)) co_return answer_failure(sudo_refused(body.file), kReplace, body.file);
  json::Value head = located(body.file);
  head["old_size"] = body.old_str.size();
  std::string both = std::move(body.old_str);
  both += body.new_str;
  auto reply = co_await call.services.workspace->file.call(frames::FileOp::replace, std::move(head), std::move(both));
  if (!reply) co_return answer_failure(reply.error(), kReplace, body.file);
  FileReplaceResult result{.file = text_in(reply->head, "path"), .replaced_count = number_in(reply->head, "count")};
  const std::string said = "Replacement completed, replaced " + std::to_string(result.replaced_count) + " occurrences";
  co_return http::ok(encode(result), said);
}

using http::Method;

constexpr Route kFile[] = {
    {Method::post, "/v1/file/read", "read_file", Scope::file, kNone, Unknown::ignore, "Read a text file, or lines of it",
     bind<read_file, OrFailure<FileReadResult>>()},
    {Method::post, "/v1/file/write", "write_file", Scope::file, kNone, Unknown::ignore, "Write a file",
     bind<write_file, OrFailure<FileWriteResult>>(), kWriteLimit},
    {Method::post, "/v1/file/replace", "replace_in_file", Scope::file, kNone, Unknown::ignore, "Replace text in a file",
     bind<replace_in_file, OrFailure<FileReplaceResult>>()},
};

}  // namespace

Area file_routes() { return kFile; }

}  // namespace caisson::routes
