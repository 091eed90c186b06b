#include "agent/worker/grep.h"

#include <fcntl.h>

#include <algorithm>
#include <deque>

#include "agent/frames/base64.h"
#include "agent/worker/child.h"

namespace caisson::worker {
namespace {

// The most matches that are counted, so that an endless search ends.
constexpr std::int64_t kMostCounted = 100'000;
constexpr std::size_t kMostLine = 16 * 1024;  // characters of a line beyond it are left out

// ripgrep's {"text": ...} or, for text that is not UTF-8, {"bytes": base64}.
std::string text_of(const json::Value& data, const char* name) {
  const auto it = data.find(name);
  if (it == data.end() || !it->is_object()) return "";
  if (const auto text = json::get_string(*it, "text"); text && *text) return **text;
  return frames::base64_decode(json::get_string(*it, "bytes").value_or(std::nullopt).value_or("")).value_or("");
}

std::string trimmed(std::string line) {
  if (line.ends_with('\n')) line.pop_back();
  if (line.ends_with('\r')) line.pop_back();
  if (line.size() > kMostLine) {
    line.resize(kMostLine);
    line += "…";
  }
  return line;
}

// Assembles ripgrep's messages into matches with the lines around them. A line near a match may be a match itself.
class Matches {
 public:
  Matches(const Request& request, std::string base)
      : base_(std::move(base)),
        before_(request.number("before").value_or(0)),
        after_(request.number("after").value_or(0)),
        skip_(request.number("skip").value_or(0)),
        most_(request.number("most").value_or(500)) {}

  // False: stop the search.
  bool take(std::string_view text) {
    auto message = json::parse(text, {.max_bytes = 8u << 20, .max_depth = 16, .max_values = 256 * 1024});
    if (!message || !message->is_object()) return true;
    const std::string type = json::get_string(*message, "type").value_or(std::nullopt).value_or("");
    const auto data = message->find("data");
    if (data == message->end() || !data->is_object()) return true;
    if (type == "begin") begin(*data);
    else if (type == "match" || type == "context") return line(*data, type == "match");
    else if (type == "summary") summary(*data);
    return true;
  }

  [[nodiscard]] bool empty() const { return total_ == 0; }

  Answer answer(const std::string& path, bool directory) {
    Answer out;
    out.body = "[";
    for (json::Value& item : found_) {
      if (!directory) item["f"] = path;  // ripgrep calls it <stdin>
      const std::string text = json::dump(item);
      if (out.body.size() + text.size() > kMostAnswer) {
        truncated_ = true;
        break;
      }
      if (out.body.size() > 1) out.body += ',';
      out.body += text;
    }
    out.body += ']';
    out.head = {{"path", path}, {"total", total_}, {"matched", std::max(matched_, files_)}, {"truncated", truncated_}};
    return out;
  }
  void cut() { truncated_ = true; }

 private:
  void begin(const json::Value& data) {
    file_ = text_of(data, "path");
    recent_.clear();
    open_.clear();
    counted_file_ = false;
  }

  bool line(const json::Value& data, bool match) {
    const std::int64_t number = json::get_int(data, "line_number").value_or(std::nullopt).value_or(0);
    std::string text = trimmed(text_of(data, "lines"));
    const std::int64_t last = number + std::ranges::count(text, '\n');
    for (const auto& [item, until] : open_)
      if (number <= until) found_[item]["a"].push_back(text);
    std::erase_if(open_, [&](const auto& o) { return o.second <= last; });
    if (match && !add(number, last, text)) return false;
    recent_.emplace_back(last, std::move(text));
    while (!recent_.empty() && static_cast<std::int64_t>(recent_.size()) > std::max<std::int64_t>(before_, 1))
      recent_.pop_front();
    return true;
  }

  bool add(std::int64_t number, std::int64_t last, const std::string& text) {
    ++total_;
    files_ += std::exchange(counted_file_, true) ? 0 : 1;
    if (total_ > kMostCounted) return cut(), false;
    if (total_ <= skip_) return true;
    kept_bytes_ += text.size();
    if (static_cast<std::int64_t>(found_.size()) >= most_ || kept_bytes_ > kMostAnswer) return cut(), true;
    json::Value item = {{"f", base_ + (file_.starts_with("./") ? file_.substr(2) : file_)}, {"n", number}, {"l", text}};
    item["b"] = json::Value::array();
    item["a"] = json::Value::array();
    for (const auto& [at, line] : recent_)
      if (at >= number - before_ && at < number) item["b"].push_back(line);
    found_.push_back(std::move(item));
    if (after_ > 0) open_.emplace_back(found_.size() - 1, last + after_);
    return true;
  }

  void summary(const json::Value& data) {
    const auto stats = data.find("stats");
    if (stats == data.end() || !stats->is_object()) return;
    matched_ = json::get_int(*stats, "searches_with_match").value_or(std::nullopt).value_or(0);
  }

  const std::string base_;
  const std::int64_t before_, after_, skip_, most_;
  std::string file_;
  std::deque<std::pair<std::int64_t, std::string>> recent_;  // last line and text of what came before
  std::vector<std::pair<std::size_t, std::int64_t>> open_;   // matches that take lines up to there
  std::vector<json::Value> found_;
  std::int64_t total_ = 0, files_ = 0, matched_ = 0;
  std::size_t kept_bytes_ = 0;
  bool truncated_ = false, counted_file_ = false;
};

bool is_size(const std::string& text) {
  if (text.empty() || text.size() > 12) return false;
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0) return false;
  return digits == std::string::npos || (digits + 1 == text.size() && std::string_view("KMG").contains(text[digits]));
}

Done<std::vector<std::string>> arguments(const Request& request, const std::string& path) {
  std::vector<std::string> argv = {"rg", "--json", "--no-config", "--sort=path", "--engine=auto"};
  if (request.flag("fixed")) argv.emplace_back("--fixed-strings");
  if (request.flag("ignore_case")) argv.emplace_back("--ignore-case");
  if (request.flag("multiline")) argv.insert(argv.end(), {"--multiline", "--multiline-dotall"});
  if (request.flag("flat")) argv.emplace_back("--max-depth=1");
  // For one file, lines must be counted as `read` counts them. Without this option ripgrep ends a line at each null byte.
  if (request.flag("files_only")) argv.emplace_back("--text");
  argv.push_back("--before-context=" + std::to_string(request.number("before").value_or(0)));
  argv.push_back("--after-context=" + std::to_string(request.number("after").value_or(0)));
  if (const auto size = request.text_if("max_file_size")) {
    if (!is_size(*size))
      return refused("invalid_target", path, "max_file_size must be a number with K, M or G, not " + quote(*size));
    argv.push_back("--max-filesize=" + *size);
  }
  if (const auto type = request.text_if("type")) argv.push_back("--type=" + *type);
  for (const std::string& glob : request.texts("include")) argv.push_back("--glob=" + glob);
  for (const std::string& glob : request.texts("exclude")) argv.push_back("--glob=!" + glob);
  argv.push_back("--regexp=" + request.text("pattern"));
  return argv;
}

// For each unreadable file ripgrep prints a line with the errno, and searches the others. Any other line is a failure of the
// search: a pattern that neither engine accepts, a match beyond the limits of PCRE2, an unknown type or glob.
bool only_unreadable(std::string_view errors) {
  bool some = false;
  errors = errors.substr(0, errors.rfind('\n') + 1);  // only the first ones are kept
  while (!errors.empty()) {
    const std::string_view line = errors.substr(0, errors.find('\n'));
    errors.remove_prefix(std::min(errors.size(), line.size() + 1));
    if (line.empty()) continue;
    if (!line.contains("(os error ")) return false;
    some = true;
  }
  return some;
}

}  // namespace

Outcome grep_files(const Request& request) {
  TRY_ASSIGN(std::string path, absolute(request.text("path")));
  if (request.text("pattern").contains('\0')) return refused("invalid_target", path, "the pattern has a null byte");
  TRY_ASSIGN(std::vector<std::string> argv, arguments(request, path));
  // The target is opened here, once: a file becomes ripgrep's input, a directory its working directory.
  TRY_ASSIGN(const Fd top, open_path(path, O_RDONLY));
  struct stat st{};
  if (::fstat(top.get(), &st) != 0) return failed(errno, path);
  const bool directory = S_ISDIR(st.st_mode);
  if (directory && request.flag("files_only")) return failed(EISDIR, path);
  if (!directory && !S_ISREG(st.st_mode)) return refused("invalid_target", path, "Not a regular file", EINVAL);
  ChildRequest child;
  if (directory) {
    argv.emplace_back("./");
    child.directory = &top;
  } else {
    argv.emplace_back("-");
    child.input = &top;
  }
  child.argv = std::move(argv);
  Matches matches(request, directory ? (path.ends_with('/') ? path : path + "/") : "");
  const auto line = [&](std::string_view text) { return matches.take(text); };
  TRY_ASSIGN(const ChildEnd end, run_child(child, request, line));
  const bool killed = !end.stopped && end.exit_code >= 128;
  if (end.stopped || killed) matches.cut();
  if (killed && matches.empty())
    return refused("io_error", path,
                   "the search was ended by signal " + std::to_string(end.exit_code - 128) + ": search less at once", EIO);
  if (!end.stopped && end.exit_code > 1 && matches.empty() && !only_unreadable(end.errors)) {
    const std::string said = end.errors.substr(0, end.errors.find_last_not_of('\n') + 1);
    return refused("invalid_target", path, said.empty() ? "ripgrep failed" : said);
  }
  return matches.answer(path, directory);
}

}  // namespace caisson::worker
