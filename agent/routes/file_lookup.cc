// /v1/file: many files at once. Decisions where the contract is silent:
// - find takes a name at any depth, or with a slash a path below the directory; hidden directories only when the pattern names
//   them.
// - files_searched is null: ripgrep does not count files without a match.
// - search counts lines from 1, as grep does. Both use ripgrep: its syntax applies, and for grep its rules (.gitignore, hidden
//   and binary files). The one file of a search is always treated as text.
// - sort_by is any text in the contract, which describes a few values: any other value is accepted, but the hint says that it had
//   no effect.
// - a list that is cut says so in `truncated` (beyond the schema where it has none) and in the hint.
#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

#include "agent/routes/file_calls.h"
#include "agent/routes/file_lookup_types.h"
#include "agent/routes/table.h"
#include "agent/services/common/text.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/tables/fields.h"

namespace caisson::routes {
namespace {

constexpr FileOperation kList{"list", "Failed to list path"};
constexpr FileOperation kGlob{"glob", "Failed to glob files"};
constexpr FileOperation kFind{"find", "Failed to find files"};
constexpr FileOperation kSearch{"search", "Failed to search file"};
constexpr FileOperation kGrep{"grep", "Failed to grep files"};
constexpr std::int64_t kMostListed = 50'000;

std::optional<std::string> cut_hint(bool cut) {
  if (!cut) return std::nullopt;
  return "The list is cut: narrow the path or the pattern";
}

// The sort order, and the hint about it.
struct Order {
  std::string by;
  std::optional<std::string> hint;
};
Order order_of(const std::optional<std::string>& asked, std::span<const std::string_view> known) {
  if (!asked) return {.by = std::string(known.front())};
  if (std::ranges::find(known, *asked) != known.end()) return {.by = *asked};
  std::string hint = "Unknown sort_by " + quote(*asked, 64) + ": sorted by " + std::string(known.front()) + ". Known values:";
  for (const std::string_view name : known) hint.append(" ").append(name);
  return {.by = std::string(known.front()), .hint = std::move(hint)};
}
constexpr std::array<std::string_view, 4> kListOrders = {"name", "size", "modified", "type"};
constexpr std::array<std::string_view, 4> kGlobOrders = {"path", "name", "size", "modified"};

std::optional<std::string> hint_of(bool cut, const Order& order) {
  const auto cut_too = cut_hint(cut);
  return cut_too && order.hint ? *cut_too + ". " + *order.hint : cut_too ? cut_too : order.hint;
}

std::string extension_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? "" : name.substr(dot);
}

std::string octal(std::int64_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%03o", static_cast<unsigned>(mode & 07777));
  return text;
}

FileInfo info_of(const json::Value& item, const FileListRequest& asked) {
  FileInfo info{.name = text_in(item, "n"), .path = text_in(item, "p"), .is_directory = json::flag_of(item, "d")};
  if (asked.include_size.value_or(true) && !info.is_directory) info.size = number_in(item, "s");
  info.modified_time = iso_time(number_in(item, "m"));
  if (asked.include_permissions.value_or(false)) info.permissions = octal(number_in(item, "x"));
  if (const std::string extension = extension_of(info.name); !info.is_directory && !extension.empty()) info.extension = extension;
  return info;
}

task<http::Response> list_path(Call call, FileListRequest body) {
  const Order order = order_of(body.sort_by, kListOrders);
  json::Value head = {
      {"path", body.path}, {"recursive", body.recursive.value_or(false)},  {"hidden", body.show_hidden.value_or(true)},
      {"sort", order.by},  {"descending", body.sort_desc.value_or(false)}, {"most", kMostListed}};
  if (body.file_types) head["types"] = *body.file_types;
  if (body.max_depth) head["max_depth"] = std::max<std::int64_t>(*body.max_depth, 1);
  auto reply = co_await call.services.workspace->file.call(frames::FileOp::list, std::move(head));
  if (!reply) co_return answer_failure(reply.error(), kList, body.path);
  CO_TRY_ASSIGN(const json::Value list, list_in(reply->body));
  FileListResult result{.path = text_in(reply->head, "path")};
  for (const json::Value& item : list) result.files.push_back(info_of(item, body));
  result.total_count = number_in(reply->head, "total");
  result.directory_count = number_in(reply->head, "directories");
  result.file_count = result.total_count - result.directory_count;
  const bool cut = json::flag_of(reply->head, "truncated");
  json::Value data = encode(result);
  if (cut) data["truncated"] = true;
  co_return http::ok(std::move(data), "Path listed successfully", hint_of(cut, order));
}

task<http::Response> glob_files(Call call, FileGlobRequest body) {
  const bool facts = body.include_metadata.value_or(true);
  const Order order = order_of(body.sort_by, kGlobOrders);
  json::Value head = {{"path", body.path},
                      {"pattern", body.pattern},
                      {"hidden", body.include_hidden.value_or(false)},
                      {"files_only", body.files_only.value_or(true)},
                      {"facts", facts || order.by == "size" || order.by == "modified"},
                      {"sort", order.by},
                      {"descending", body.sort_desc.value_or(false)},
                      {"most", body.max_results.value_or(5000)}};
  if (body.exclude) head["exclude"] = *body.exclude;
  auto reply = co_await call.services.workspace->file.call(frames::FileOp::glob, std::move(head));
  if (!reply) co_return answer_failure(reply.error(), kGlob, body.path);
  CO_TRY_ASSIGN(const json::Value list, list_in(reply->body));
  FileGlobResult result{.path = text_in(reply->head, "path"), .pattern = body.pattern};
  for (const json::Value& item : list) {
    GlobFileInfo info{.path = text_in(item, "p"), .name = text_in(item, "n"), .is_directory = json::flag_of(item, "d")};
    if (facts && !info.is_directory) info.size = number_in(item, "s");
    if (facts) info.modified_time = iso_time(number_in(item, "m"));
    result.files.push_back(std::move(info));
  }
  result.total_count = number_in(reply->head, "total");
  result.truncated = json::flag_of(reply->head, "truncated");
  co_return http::ok(encode(result), "Glob completed", hint_of(result.truncated, order));
}

task<http::Response> find_files(Call call, FileFindRequest body) {
  json::Value head = {{"path", body.path},  {"pattern", body.glob}, {"by_name", true},
                      {"files_only", true}, {"sort", "path"},       {"most", kMostListed}};
  auto reply = co_await call.services.workspace->file.call(frames::FileOp::glob, std::move(head));
  if (!reply) co_return answer_failure(reply.error(), kFind, body.path);
  CO_TRY_ASSIGN(const json::Value list, list_in(reply->body));
  FileFindResult result{.path = text_in(reply->head, "path")};
  for (const json::Value& item : list) result.files.push_back(text_in(item, "p"));
  const bool cut = json::flag_of(reply->head, "truncated");
  json::Value data = encode(result);
  if (cut) data["truncated"] = true;
  const std::string said = "Search completed, found " + std::to_string(result.files.size()) + " files";
  co_return http::ok(std::move(data), said, cut_hint(cut));
}

task<http::Response> search_in_file(Call call, FileSearchRequest body) {
  if (body.sudo.value_or(false)) co_return answer_failure(sudo_refused(body.file), kSearch, body.file);
  json::Value head = {{"path", body.file}, {"pattern", body.regex}, {"most", 10'000}, {"files_only", true}};
  auto reply = co_await call.services.workspace->file.call(frames::FileOp::grep, std::move(head));
  if (!reply) co_return answer_failure(reply.error(), kSearch, body.file);
  CO_TRY_ASSIGN(const json::Value list, list_in(reply->body));
  FileSearchResult result{.file = text_in(reply->head, "path")};
  for (const json::Value& item : list) {
    result.matches.push_back(text_in(item, "l"));
    result.line_numbers.push_back(number_in(item, "n"));
  }
  const bool cut = json::flag_of(reply->head, "truncated");
  const std::string said = "Search completed, found " + std::to_string(number_in(reply->head, "total")) + " matches";
  co_return http::ok(encode(result), said, cut_hint(cut));
}

std::vector<std::string> lines_in(const json::Value& item, std::string_view key) {
  std::vector<std::string> out;
  if (const auto it = item.find(key); it != item.end() && it->is_array())
    for (const json::Value& line : *it)
      if (line.is_string()) out.push_back(services::to_utf8(line.get<std::string>()));
  return out;
}

json::Value grep_head(const FileGrepRequest& body) {
  json::Value head = {{"path", body.path},
                      {"pattern", body.pattern},
                      {"ignore_case", body.case_insensitive.value_or(false)},
                      {"fixed", body.fixed_strings.value_or(false)},
                      {"before", body.context_before.value_or(0)},
                      {"after", body.context_after.value_or(0)},
                      {"most", body.max_results.value_or(500)},
                      {"skip", body.offset.value_or(0)},
                      {"max_file_size", body.max_file_size.value_or("1M")},
                      {"multiline", body.multiline.value_or(false)},
                      {"flat", !body.recursive.value_or(true)}};
  if (body.include) head["include"] = *body.include;
  if (body.exclude) head["exclude"] = *body.exclude;
  if (body.type) head["type"] = *body.type;
  return head;
}

task<http::Response> grep_files(Call call, FileGrepRequest body) {
  auto reply = co_await call.services.workspace->file.call(frames::FileOp::grep, grep_head(body));
  if (!reply) co_return answer_failure(reply.error(), kGrep, body.path);
  CO_TRY_ASSIGN(const json::Value list, list_in(reply->body));
  FileGrepResult result{.path = text_in(reply->head, "path"), .pattern = body.pattern};
  for (const json::Value& item : list) {
    GrepMatch match{.file = text_in(item, "f"), .line_number = number_in(item, "n"), .line_content = text_in(item, "l")};
    if (body.context_before.value_or(0) > 0) match.context_before = lines_in(item, "b");
    if (body.context_after.value_or(0) > 0) match.context_after = lines_in(item, "a");
    result.matches.push_back(std::move(match));
  }
  result.match_count = number_in(reply->head, "total");
  result.files_matched = number_in(reply->head, "matched");
  result.truncated = json::flag_of(reply->head, "truncated");
  co_return http::ok(encode(result), "Grep completed", cut_hint(result.truncated));
}

using http::Method;

constexpr Route kLookup[] = {
    {Method::post, "/v1/file/list", "list_path_v1_file_list_post", Scope::file, kNone, Unknown::ignore, "List a directory",
     bind<list_path, OrFailure<FileListResult>>()},
    {Method::post, "/v1/file/glob", "glob_files", Scope::file, kNone, Unknown::ignore, "Files by a pattern of their paths",
     bind<glob_files, OrFailure<FileGlobResult>>()},
    {Method::post, "/v1/file/find", "find_files_v1_file_find_post", Scope::file, kNone, Unknown::ignore,
     "Files by a pattern of their names", bind<find_files, OrFailure<FileFindResult>>()},
    {Method::post, "/v1/file/search", "search_in_file", Scope::file, kNone, Unknown::ignore, "Lines of a file that match",
     bind<search_in_file, OrFailure<FileSearchResult>>()},
    {Method::post, "/v1/file/grep", "grep_files", Scope::file, kNone, Unknown::ignore, "Lines of many files that match (ripgrep)",
     bind<grep_files, OrFailure<FileGrepResult>>()},
};

}  // namespace

Area file_lookup_routes() { return kLookup; }

}  // namespace caisson::routes
