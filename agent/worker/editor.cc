#include "agent/worker/editor.h"

#include <fcntl.h>

#include <algorithm>

#include "agent/worker/document.h"
#include "agent/worker/editor_text.h"
#include "agent/worker/encoding.h"
#include "agent/worker/walk.h"
#include "launcher/common/base/sys.h"

namespace caisson::worker {
namespace {

using namespace editor;

constexpr std::size_t kMostEdited = 10 * 1024 * 1024;
constexpr std::int64_t kListDepth = 2;
constexpr std::size_t kMostListed = 2000;

// A refusal of the tool itself: its text is the whole message.
std::unexpected<Failure> tool(const std::string& path, std::string text, std::string kind = "invalid_target") {
  return refused(std::move(kind), path, std::move(text));
}

struct Edit {
  std::string output;
  std::optional<std::string> old_text, new_text;
  bool existed = true;
  json::Value metadata;  // null: none
};
using Edited = Done<Edit>;

// The bytes of a request are its texts, one after the other; `parts` has their sizes, null for an absent text.
std::optional<std::string> part_of(const Request& request, std::string_view name) {
  std::size_t at = 0;
  const auto parts = request.head.find("parts");
  if (parts == request.head.end() || !parts->is_object()) return std::nullopt;
  for (const std::string_view part : {"file_text", "old_str", "new_str"}) {
    const auto size = json::get_int(*parts, part).value_or(std::nullopt);
    if (part == name) {
      if (!size || at > request.body.size()) return std::nullopt;
      return request.body.substr(at, static_cast<std::size_t>(*size));
    }
    at += static_cast<std::size_t>(std::max<std::int64_t>(size.value_or(0), 0));
  }
  return std::nullopt;
}

Outcome answer_of(Edit done, const std::string& path) {
  Answer answer;
  const std::string old_text = done.old_text.value_or(""), new_text = done.new_text.value_or("");
  answer.head = {{"path", path},
                 {"existed", done.existed},
                 {"sizes", {done.output.size(), old_text.size(), new_text.size()}},
                 {"has_old", done.old_text.has_value()},
                 {"has_new", done.new_text.has_value()}};
  if (!done.metadata.is_null()) answer.head["metadata"] = std::move(done.metadata);
  answer.body = std::move(done.output) + old_text + new_text;
  return answer;
}

Failure missing(const std::string& path) {
  return {ENOENT, path, "not_found", invalid("path", path, "The path " + path + " does not exist. Please provide a valid path.")};
}

// The text of a file that is shown or changed.
struct Text {
  Opened file;
  std::string content;
  std::string bytes;     // as they are in the file, where they are not `content`
  std::string encoding;  // "": the content is the bytes

  [[nodiscard]] const std::string& before() const { return encoding.empty() ? content : bytes; }
};
Done<Text> text_of(EditHistory& history, const Request& request, Done<Opened> file, const std::string& path) {
  if (!file) {
    if (file.error().number == ENOENT) return std::unexpected(missing(path));
    if (file.error().number == EISDIR)
      return tool(path, invalid("path", path,
                                "The path " + path + " is a directory and only the `view` command can be used on directories."));
    return std::unexpected(std::move(file).error());
  }
  if (static_cast<std::size_t>(file->st.st_size) > kMostEdited)
    return tool(path, "File is too large (" + std::to_string(file->st.st_size >> 20) + "MB). Maximum allowed size is " +
                          std::to_string(kMostEdited >> 20) + "MB.");
  TRY_ASSIGN(std::string content, read_whole(file->fd, path, kMostEdited));
  if (content.substr(0, 8192).contains('\0'))
    return tool(path, "File appears to be binary and this file type cannot be read or edited by this tool.", "decode_error");
  if (mostly_utf8(content)) return Text{std::move(*file), std::move(content), "", ""};
  TRY_ASSIGN(Decoded decoded, decode_text(content, history.encoding_of(path), request));
  history.remember(path, decoded.encoding);
  if (decoded.text.size() > kMostEdited) return failed(EFBIG, path);
  return Text{std::move(*file), std::move(decoded.text), std::move(content), std::move(decoded.encoding)};
}

Done<Text> open_text(EditHistory& history, const Request& request, const std::string& path) {
  return text_of(history, request, open_regular(path, O_RDWR), path);
}

// Replaces the file's content by this text, in the file's encoding.
Done<void> replace_text(EditHistory& history, const Request& request, const Text& text, const std::string& path,
                        const std::string& after) {
  if (after.size() > kMostEdited) return failed(EFBIG, path);
  if (text.encoding.empty()) {
    TRY(overwrite(text.file.fd, path, after));
  } else {
    TRY_ASSIGN(const std::string bytes, encode_text(after, text.encoding, path, request));
    TRY(overwrite(text.file.fd, path, bytes));
  }
  history.push(path, text.before());
  return {};
}

Edited view_directory(const Fd& top, const std::string& path, const Request& request) {
  const std::string slash = path.ends_with('/') ? "" : "/";
  std::vector<std::pair<std::string, bool>> names = {{path, !slash.empty()}};  // and whether a slash follows
  std::size_t hidden = 0;
  const auto visit = [&](const Entry& entry, int) {
    if (entry.name.front() == '.') {
      hidden += entry.depth == 1 ? 1 : 0;
      return Next::skip;
    }
    names.emplace_back(path + slash + entry.relative, entry.directory);
    if (names.size() > kMostListed) return Next::stop;
    return static_cast<std::int64_t>(entry.depth) < kListDepth ? Next::descend : Next::skip;
  };
  bool complete = true;
  TRY(walk(top, path, request, visit, complete));
  std::ranges::sort(names);
  std::string list;
  for (const auto& [name, directory] : names) list += (list.empty() ? "" : "\n") + name + (directory ? "/" : "");
  std::string out = "Here's the files and directories up to 2 levels deep in " + path + ", excluding hidden items:\n" +
                    clipped(list, kDirectoryNotice);
  if (hidden > 0)
    out += "\n\n" + std::to_string(hidden) + " hidden files/directories in this directory are excluded. You can use 'ls -la " +
           path + "' to see them.";
  return Edit{.output = std::move(out)};
}

Done<std::vector<std::int64_t>> range_of(const Request& request, const std::string& path) {
  std::vector<std::int64_t> out;
  const auto it = request.head.find("view_range");
  if (it == request.head.end() || it->is_null() || it->empty()) return out;
  for (const json::Value& item : *it)
    if (item.is_number_integer()) out.push_back(item.get<std::int64_t>());
  if (out.size() != 2 || it->size() != 2)
    return tool(path, invalid("view_range", json::dump(*it), "It should be a list of two integers."));
  return out;
}

Edited view(EditHistory& history, const std::string& path, const Request& request) {
  TRY_ASSIGN(const auto range, range_of(request, path));
  auto opened = open_path(path, O_RDONLY);
  if (!opened && opened.error().number == ENOENT) return std::unexpected(missing(path));
  if (!opened) return std::unexpected(std::move(opened).error());
  struct stat st{};
  if (::fstat(opened->get(), &st) != 0) return failed(errno, path);
  if (S_ISDIR(st.st_mode)) {
    if (!range.empty())
      return tool(path, invalid("view_range", number_list(range),
                                "The `view_range` parameter is not allowed when `path` points to a directory."));
    return view_directory(*opened, path, request);
  }
  if (const std::string kind = document_kind(path); !kind.empty() && S_ISREG(st.st_mode)) {
    TRY_ASSIGN(Document document, view_document(*opened, path, kind, request));
    return Edit{.output = "Here's the content of the file " + path + " displayed in Markdown format:\n" +
                          clipped(document.text, kFileNotice) + "\n",
                .metadata = request.flag("metadata") ? std::move(document.metadata) : json::Value(nullptr)};
  }
  TRY_ASSIGN(const Text text, text_of(history, request, regular(std::move(*opened), path), path));
  if (range.empty()) return Edit{.output = numbered(text.content, path)};
  auto lines = lines_of(text.content);
  if (text.content.ends_with('\n')) lines.pop_back();
  const auto count = static_cast<std::int64_t>(lines.size());
  const std::int64_t first = range[0], last = range[1] == -1 ? count : std::min(range[1], count);
  const auto wrong = [&](const std::string& why) { return tool(path, invalid("view_range", number_list(range), why)); };
  if (first < 1 || first > count)
    return wrong("Its first element `" + std::to_string(first) + "` should be within the range of lines of the file: [1, " +
                 std::to_string(count) + "].");
  if (last < first)
    return wrong("Its second element `" + std::to_string(last) + "` should be greater than or equal to the first element `" +
                 std::to_string(first) + "`.");
  const std::string lines_there = std::to_string(count);
  const std::string note = range[1] > count ? "NOTE: We only show up to " + lines_there + " since there're only " + lines_there +
                                                  " lines in this file.\n"
                                            : "";
  return Edit{.output = note + numbered(joined(lines, first - 1, last), path, first)};
}

Edited create(EditHistory& history, const std::string& path, const Request& request) {
  const auto text = part_of(request, "file_text");
  if (!text) return tool(path, required("file_text", "create"));
  auto file = open_for_writing(path, O_WRONLY);
  if (!file && file.error().number != EISDIR) return std::unexpected(std::move(file).error());
  if (!file || !file->created)
    return refused("already_exists", path,
                   invalid("path", path, "File already exists at: " + path + ". Cannot overwrite files using command `create`."),
                   EEXIST);
  TRY(overwrite(file->fd, path, *text));
  history.push(path, *text);
  return Edit{.output = "File created successfully at: " + path, .new_text = *text, .existed = false};
}

// The positions at which `old` begins. An empty text matches before each line and at the end.
std::vector<std::size_t> places_of(const std::string& text, std::string_view what) {
  std::vector<std::size_t> out;
  const std::string_view sought = what.empty() ? "\n" : what;
  if (what.empty()) out.push_back(0);
  for (std::size_t at = text.find(sought); at != std::string::npos && out.size() < 100'000;
       at = text.find(sought, at + sought.size()))
    out.push_back(what.empty() ? at + 1 : at);
  if (what.empty() && out.back() < text.size()) out.push_back(text.size());
  return out;
}

// The line number of each of these ascending positions, without repetition.
std::vector<std::int64_t> lines_at(const std::string& text, const std::vector<std::size_t>& places) {
  std::vector<std::int64_t> out;
  std::int64_t line = 1;
  std::size_t seen = 0;
  for (const std::size_t place : places) {
    line += std::count(text.begin() + static_cast<std::ptrdiff_t>(seen), text.begin() + static_cast<std::ptrdiff_t>(place), '\n');
    seen = place;
    if (out.empty() || out.back() != line) out.push_back(line);
  }
  return out;
}

// Ends the lines as a file from Windows does.
std::string with_crlf(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' && !out.ends_with('\r')) out += '\r';
    out += c;
  }
  return out;
}

Edited str_replace(EditHistory& history, const std::string& path, const Request& request) {
  const auto old_given = part_of(request, "old_str");
  if (!old_given) return tool(path, required("old_str", "str_replace"));
  std::string old_text = *old_given, new_text = part_of(request, "new_str").value_or("");
  const std::string mode = request.text("replace_mode");
  if (old_text == new_text)
    return tool(path, invalid("new_str", new_text, "No replacement was performed. `new_str` and `old_str` must be different."));
  TRY_ASSIGN(Text text, open_text(history, request, path));
  std::vector<std::size_t> places = places_of(text.content, old_text);
  if (places.empty() && text.content.contains("\r\n")) {  // a view does not show how lines end
    std::string old_lines = with_crlf(old_text);
    if (places = places_of(text.content, old_lines); !places.empty()) {
      old_text = std::move(old_lines);
      new_text = with_crlf(new_text);
    }
  }
  if (places.empty() && !stripped(old_text).empty()) {  // agents copy text with blanks around it
    old_text = std::string(stripped(old_text));
    new_text = std::string(stripped(new_text));
    places = places_of(text.content, old_text);
  }
  if (places.empty())
    return tool(path, "No replacement was performed, old_str `" + *old_given + "` did not appear verbatim in " + path + ".");
  if (places.size() > 1 && (mode.empty() || old_text.empty()))
    return tool(path, "No replacement was performed. Multiple occurrences of old_str `" + old_text + "` in lines " +
                          number_list(lines_at(text.content, places)) + ". Please ensure it is unique.");
  if (mode == "LAST") places = {places.back()};
  else if (mode != "ALL") places = {places.front()};
  std::string after;
  std::size_t from = 0;
  for (const std::size_t place : places) {
    after.append(text.content, from, place - from).append(new_text);
    from = place + old_text.size();
    if (after.size() > kMostEdited) return failed(EFBIG, path);
  }
  after.append(text.content, from);
  TRY(replace_text(history, request, text, path, after));
  const std::int64_t line = lines_at(text.content, {places.front()}).front() - 1;
  const std::int64_t first = std::max<std::int64_t>(0, line - kSnippetLines);
  const std::int64_t last = line + kSnippetLines + std::ranges::count(new_text, '\n');
  std::string out = "The file " + path + " has been edited. " +
                    numbered(joined(lines_of(after), first, last + 1), "a snippet of " + path, first + 1) + std::string(kReview);
  return Edit{.output = std::move(out), .old_text = std::move(text.content), .new_text = std::move(after)};
}

Edited insert(EditHistory& history, const std::string& path, const Request& request) {
  const auto at = request.number("insert_line");
  const auto new_text = part_of(request, "new_str");
  if (!at) return tool(path, required("insert_line", "insert"));
  if (!new_text) return tool(path, required("new_str", "insert"));
  TRY_ASSIGN(Text text, open_text(history, request, path));
  // A line break at the end ends the last line and does not begin another.
  auto lines = lines_of(text.content);
  if (text.content.empty() || text.content.ends_with('\n')) lines.pop_back();
  const auto count = static_cast<std::int64_t>(lines.size());
  if (*at < 0 || *at > count)
    return tool(path, invalid("insert_line", std::to_string(*at),
                              "It should be within the range of allowed values: [0, " + std::to_string(count) + "]"));
  std::string after;
  for (std::int64_t i = 0; i < *at; ++i) after.append(lines[static_cast<std::size_t>(i)]).append("\n");
  after += *new_text;
  if (!new_text->ends_with('\n')) after += '\n';
  std::size_t rest = 0;
  for (std::int64_t i = 0; i < *at; ++i) rest += lines[static_cast<std::size_t>(i)].size() + 1;
  after.append(text.content, std::min(rest, text.content.size()));
  TRY(replace_text(history, request, text, path, after));
  const std::int64_t added = std::ranges::count(*new_text, '\n') + (new_text->ends_with('\n') ? 0 : 1);
  const std::int64_t first = std::max<std::int64_t>(0, *at - kSnippetLines);
  std::string out =
      "The file " + path + " has been edited. " +
      numbered(joined(lines_of(after), first, *at + added + kSnippetLines), "a snippet of the edited file", first + 1) +
      std::string(kReviewInsert);
  return Edit{.output = std::move(out), .old_text = std::move(text.content), .new_text = std::move(after)};
}

Edited undo(EditHistory& history, const std::string& path, const Request& request) {
  TRY_ASSIGN(Text text, open_text(history, request, path));
  auto before = history.pop(path);
  if (!before) return tool(path, "No edit history found for " + path + "." + history.note());
  if (auto written = overwrite(text.file.fd, path, *before); !written) {
    history.push(path, std::move(*before));
    return std::unexpected(std::move(written).error());
  }
  Decoded now{"", std::move(*before)};
  if (!mostly_utf8(now.text)) {
    TRY_ASSIGN(now, decode_text(std::move(now.text), text.encoding, request));
  }
  std::string out = "Last edit to " + path + " undone successfully. " + numbered(now.text, path);
  return Edit{.output = std::move(out), .old_text = std::move(text.content), .new_text = std::move(now.text)};
}

}  // namespace

EditHistory::EditHistory(bool not_the_first) {
  if (!not_the_first) return;
  note_ = " Edits before " + sys::rfc3339(sys::realtime_ns()) + " can no longer be undone: what remembered them has ended.";
}

void EditHistory::forget_oldest() {
  const auto it = edits_.find(order_.front());
  bytes_ -= it->second.front().size();
  it->second.pop_front();
  if (!it->second.empty()) return;
  edits_.erase(it);
  order_.pop_front();
}

void EditHistory::push(const std::string& path, std::string text) {
  const std::scoped_lock held(lock_);
  std::erase(order_, path);
  order_.push_back(path);
  bytes_ += text.size();
  auto& edits = edits_[path];
  edits.push_back(std::move(text));
  if (edits.size() > kMostEdits) {
    bytes_ -= edits.front().size();
    edits.pop_front();
  }
  while (bytes_ > kMostBytes) forget_oldest();
}

void EditHistory::remember(const std::string& path, const std::string& encoding) {
  const std::scoped_lock held(lock_);
  if (encodings_.size() >= kMostEncodings) encodings_.clear();
  encodings_[path] = encoding;
}

std::string EditHistory::encoding_of(const std::string& path) {
  const std::scoped_lock held(lock_);
  const auto it = encodings_.find(path);
  return it == encodings_.end() ? "" : it->second;
}

std::optional<std::string> EditHistory::pop(const std::string& path) {
  const std::scoped_lock held(lock_);
  const auto it = edits_.find(path);
  if (it == edits_.end()) return std::nullopt;
  std::string text = std::move(it->second.back());
  it->second.pop_back();
  bytes_ -= text.size();
  if (it->second.empty()) {
    edits_.erase(it);
    std::erase(order_, path);
  }
  return text;
}

Outcome edit_file(EditHistory& history, const Request& request) {
  TRY_ASSIGN(const std::string path, absolute(request.text("path")));
  const std::string command = request.text("command");
  Edited done = tool(path, invalid("command", command, "Allowed are view, create, str_replace, insert and undo_edit."));
  if (command == "view") done = view(history, path, request);
  else if (command == "create") done = create(history, path, request);
  else if (command == "str_replace") done = str_replace(history, path, request);
  else if (command == "insert") done = insert(history, path, request);
  else if (command == "undo_edit") done = undo(history, path, request);
  if (!done) return std::unexpected(std::move(done).error());
  return answer_of(std::move(*done), path);
}

}  // namespace caisson::worker
