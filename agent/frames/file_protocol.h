// The operations of caisson-file-worker and the members of each, for both ends. The agent sends nothing else (services/files),
// and the worker accepts nothing else (agent/worker/main.cc). A request's head also has "id" and "op"; {"cancel": id} has
// neither.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "launcher/common/base/json.h"
#include "launcher/common/base/word.h"

namespace caisson::frames {

enum class FileOp {
  read,
  write,
  replace,
  list,
  glob,
  grep,
  edit,
  watch_start,
  watch_stop,
  upload_begin,
  upload_part,
  upload_end,
  upload_abort,
  download_open,
  download_part,
  download_close
};

struct FileOpRow {
  FileOp op;
  std::string_view name;
  std::string_view members;  // of the head, all of them optional to the protocol
};
inline constexpr std::array<FileOpRow, 16> kFileOps = {{
    {FileOp::read, "read", "path start end"},
    {FileOp::write, "write", "path append"},
    {FileOp::replace, "replace", "path old_size"},
    {FileOp::list, "list", "path recursive hidden types max_depth sort descending most"},
    {FileOp::glob, "glob", "path pattern exclude by_name hidden files_only facts sort descending most"},
    {FileOp::grep, "grep",
     "path pattern include exclude type fixed ignore_case multiline flat files_only before after max_file_size skip most"},
    {FileOp::edit, "edit",
     "path command parts insert_line view_range replace_mode page_range sheet_name row_range slide_range metadata"},
    {FileOp::watch_start, "watch_start", "watcher path recursive include exclude debounce exact"},
    {FileOp::watch_stop, "watch_stop", "watcher"},
    {FileOp::upload_begin, "upload_begin", "name path"},
    {FileOp::upload_part, "upload_part", "handle"},
    {FileOp::upload_end, "upload_end", "handle name path"},
    {FileOp::upload_abort, "upload_abort", "handle"},
    {FileOp::download_open, "download_open", "path"},
    {FileOp::download_part, "download_part", "handle offset most"},
    {FileOp::download_close, "download_close", "handle"},
}};

// Rows of a table that has one for each operation, in the order of the enumeration.
template <class Rows>
[[nodiscard]] constexpr bool covers_file_ops(const Rows& rows) {
  if (std::size(rows) != kFileOps.size()) return false;
  for (std::size_t i = 0; i < kFileOps.size(); ++i)
    if (static_cast<std::size_t>(rows[i].op) != i) return false;
  return true;
}
static_assert(covers_file_ops(kFileOps));

[[nodiscard]] constexpr std::string_view file_op_name(FileOp op) { return kFileOps[static_cast<std::size_t>(op)].name; }
[[nodiscard]] constexpr std::optional<FileOp> file_op(std::string_view name) {
  const auto row = std::ranges::find(kFileOps, name, &FileOpRow::name);
  return row == kFileOps.end() ? std::nullopt : std::optional(row->op);
}
// The first member of a head that its operation does not know; nullopt: it knows all of them.
[[nodiscard]] inline std::optional<std::string> unknown_member(FileOp op, const json::Value& head) {
  const std::string_view known = kFileOps[static_cast<std::size_t>(op)].members;
  for (const auto& [name, value] : head.items()) {
    bool found = name == "id" || name == "op" || name == "bytes";
    for (std::ptrdiff_t i = 0; !found && i < count_words(known); ++i) found = word(known, static_cast<std::size_t>(i)) == name;
    if (!found) return name;
  }
  return std::nullopt;
}

}  // namespace caisson::frames
