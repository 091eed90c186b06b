// `caisson audit verify` and `audit ls`. Reads only.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "launcher/cli/args.h"
#include "launcher/cli/audit/show.h"
#include "launcher/cli/audit/verify.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/logs.h"
#include "launcher/common/audit/log.h"
#include "launcher/common/audit_lines/lines.h"
#include "launcher/common/base/sys.h"

namespace caisson::cli {

Status (*g_check_signature)(const std::string& key, const std::string& text, const std::string& signature) = nullptr;

namespace {

constexpr unsigned kIndexUs = 200'000;  // for the launcher's record of an end, behind the session's own
constexpr int kLooks = 15;              // for that record, on a busy machine
constexpr int kTries = 10;              // to find the directory at rest while logs are deleted

// Options of `verify`.
struct Wish {
  bool complete;
  std::string key;
};

struct Checked {
  bool ok = true;
  json::Value logs = json::Value::array();
  std::string text;
};

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The signature of a log's root, where the launcher made one and a key was given to check it by.
void check_signature(Checked& outcome, const std::string& path, const audit::Expected& expected, const std::string& key) {
  if (key.empty()) return;
  std::string state = "missing";
  if (!expected.signature.empty()) {
    const auto done =
        g_check_signature(key, audit::root_text(file_name(path), expected.count, expected.head), expected.signature);
    state = done ? "good" : done.error().text();
  }
  outcome.ok = outcome.ok && state == "good";
  outcome.logs.back()["signature"] = state;
  outcome.text += "  signature: " + state + "\n";
}

void add(Checked& outcome, const std::string& path, const audit::Verification& v, bool complete) {
  const bool launcher = audit::is_launcher_log(file_name(path));
  const bool cut = v.verdict == audit::Verdict::open && complete && !launcher;
  if (v.verdict == audit::Verdict::broken || cut) outcome.ok = false;
  json::Value log = audit::verification_json(v);
  log["file"] = path;
  outcome.logs.push_back(std::move(log));

  outcome.text += quote(path, 4096) + ": ";
  if (v.verdict == audit::Verdict::broken) outcome.text += "BROKEN";
  else if (v.verdict == audit::Verdict::intact) outcome.text += "intact";
  else outcome.text += launcher ? "intact so far (the launcher's log has no end)" : "open or cut: intact so far, without its end";
  outcome.text += ", " + std::to_string(v.records) + " records";
  if (v.removed != 0) outcome.text += ", " + std::to_string(v.removed) + " removed for room and on record";
  if (v.spilled != 0) outcome.text += ", " + std::to_string(v.spilled) + " on the launcher's stderr and on record";
  if (v.expected_checked && v.verdict != audit::Verdict::broken) outcome.text += ", count and head as in the launcher's log";
  outcome.text += "\n";
  for (const audit::Finding& f : v.findings)
    outcome.text += "  " + (f.file == file_name(path) ? "" : quote(f.file) + ", ") + "line " + std::to_string(f.line) +
                    ", byte " + std::to_string(f.offset) + ": " + f.what + "\n";
}

// One log: path is that of its last file.
Result<audit::Verification> check(Checked& outcome, const std::string& path, const std::vector<std::string>& files,
                                  const audit::Index& index, const Wish& wish) {
  const auto at = index.ended.find(file_name(path));
  const auto expected = at == index.ended.end() || at->second.count == 0 ? std::nullopt : std::optional(at->second);
  auto verification = audit::verify_log(files, expected);
  if (!verification) return std::unexpected(explain_access(std::move(verification.error())));
  add(outcome, path, *verification, wish.complete);
  if (expected) check_signature(outcome, path, *expected, wish.key);
  return verification;
}

// A log that the index knows and that is not here: deleted by the launcher, which wrote it down, or by somebody else.
void missing(Checked& outcome, const std::string& path, const audit::Expected& expected, const audit::Index& index) {
  const auto gone = index.deleted.find(file_name(path));
  if (gone != index.deleted.end() && gone->second.head == expected.head && gone->second.count == expected.count) {
    outcome.logs.push_back({{"file", path}, {"verdict", "deleted"}, {"records", expected.count}, {"why", gone->second.why}});
    outcome.text += quote(path, 4096) + ": deleted by the launcher (" + gone->second.why + "), " +
                    std::to_string(expected.count) + " records, on record\n";
    return;
  }
  audit::Verification lost{.verdict = audit::Verdict::broken, .expected_checked = true};
  lost.findings.push_back(
      {file_name(path), 0, 0, "missing: the launcher's log counts " + std::to_string(expected.count) + " records in it"});
  add(outcome, path, lost, false);
}

// A problem of a log without a chain.
void broken(Checked& outcome, const std::string& path, std::string what) {
  audit::Verification v{.verdict = audit::Verdict::broken};
  v.findings.push_back({file_name(path), 0, 0, std::move(what)});
  add(outcome, path, v, false);
}

// Logs that have an end of which the launcher's log says nothing. It is written right behind the session's own, and so what was
// written in its time is in it, unless records of it went to stderr.
Status check_unknown(Checked& outcome, const std::string& directory, const std::map<std::string, std::string>& unknown,
                     const audit::Verification& own) {
  if (unknown.empty() || own.spilled != 0) return {};
  audit::Index index;
  const auto absent = [&](const auto& log) { return log.second >= own.first_time && !index.ended.contains(log.first); };
  int looks = 0;
  do {
    ::usleep(kIndexUs);  // one may end just now
    TRY_ASSIGN(index, audit::read_index(directory));
  } while (++looks < kLooks && std::ranges::any_of(unknown, absent));
  for (const auto& log : unknown)
    if (absent(log))
      broken(outcome, directory + "/" + log.first, "not in the launcher's log: it was cut, or this one is not the launcher's");
  return {};
}

// Whether that is why it was not found whole: the launcher is deleting it, which is on record before the first file goes.
bool going(const std::string& directory, const std::string& name) {
  const auto index = audit::read_index(directory);
  return index && index->deleted.contains(name);
}

// Errors: not_found, where a log went while it was read; not on the last try, which tells what is there.
Status check_directory(Checked& outcome, const std::string& directory, const Wish& wish, bool last_try) {
  // The index before the names: a session that ends in between is then one that the index does not know yet.
  TRY_ASSIGN(const audit::Index index, audit::read_index(directory));
  TRY_ASSIGN(const audit::Logs logs, audit::logs_of(directory));
  if (logs.empty()) return fail(Code::not_found, "no audit logs in " + quote(directory));
  audit::Verification own;
  std::map<std::string, std::string> unknown;  // name -> time of the last record
  for (const auto& [name, files] : logs) {
    TRY_ASSIGN(audit::Verification v, check(outcome, directory + "/" + name, files, index, wish));
    if (v.verdict == audit::Verdict::broken && !last_try && going(directory, name))
      return fail(Code::not_found, quote(name) + " is being deleted");
    if (audit::is_launcher_log(name)) own = std::move(v);
    else if (v.verdict == audit::Verdict::intact && !v.expected_checked) unknown[name] = v.last_time;
  }
  const std::string launcher = directory + "/launcher.ndjson";
  if (::access(launcher.c_str(), F_OK) != 0) broken(outcome, launcher, "missing: the launcher's log is the index of all others");
  else TRY(check_unknown(outcome, directory, unknown, own));
  // Once more: what went in between is on record since.
  TRY_ASSIGN(const audit::Index later, audit::read_index(directory));
  for (const auto& [name, expected] : index.ended)
    if (!logs.contains(name) && expected.count != 0) missing(outcome, directory + "/" + name, expected, later);
  return {};
}

Status verify(Checked& outcome, const Args& args, const Options& options) {
  const Wish wish{args.has("--complete"), args.last("--key").value_or("")};
  if (args.words().empty()) {
    auto status = check_directory(outcome, options.audit, wish, false);
    for (int tries = 2; !status && status.error().code == Code::not_found && tries <= kTries; ++tries) {
      ::usleep(kIndexUs);
      outcome = {};
      status = check_directory(outcome, options.audit, wish, tries == kTries);
    }
    return status ? status : Status(std::unexpected(explain_access(std::move(status.error()))));
  }
  for (const std::string& word : args.words()) {
    const std::string path = log_path(options.audit, word), directory = path.substr(0, path.rfind('/') + 1);
    const auto index = audit::read_index(directory);
    const auto logs = audit::logs_of(directory);
    const bool all = logs && logs->contains(file_name(path));  // a segment alone is looked at alone
    const auto checked =
        check(outcome, path, all ? logs->at(file_name(path)) : std::vector{path}, index ? *index : audit::Index{}, wish);
    if (!checked) return std::unexpected(checked.error());
  }
  return {};
}

// The last record, from the file's end.
std::optional<json::Value> last_record(int fd, std::uint64_t size) {
  std::string tail(std::min<std::uint64_t>(size, audit::kMaxRecord + 1), '\0');
  const ssize_t n = ::pread(fd, tail.data(), tail.size(), static_cast<off_t>(size - tail.size()));
  if (n != static_cast<ssize_t>(tail.size()) || !tail.ends_with('\n')) return std::nullopt;
  tail.pop_back();
  const auto record = audit::parse_record(std::string_view(tail).substr(tail.rfind('\n') + 1));
  return record ? std::optional(*record) : std::nullopt;
}

// `files`: of one log, in order.
json::Value summary(const std::string& name, const std::vector<std::string>& files) {
  json::Value out = json::Value::object();
  out["log"] = name.substr(0, name.size() - std::string_view(".ndjson").size());
  std::uint64_t bytes = 0;
  struct stat st{};
  for (const std::string& path : files)
    if (::stat(path.c_str(), &st) == 0) bytes += static_cast<std::uint64_t>(st.st_size);
  auto head = audit::Lines::open(files.front()), tail = audit::Lines::open(files.back());
  if (!head || !tail || ::fstat(tail->fd().get(), &st) != 0) return out;
  out["bytes"] = bytes;
  const auto last = last_record(tail->fd().get(), static_cast<std::uint64_t>(st.st_size));
  const auto line = head->next();
  const auto first = line && *line ? audit::parse_record((*line)->text) : fail(Code::not_found, "empty");
  if (!first || !last) return out;
  for (const char* key : {"domain", "label"})
    if (first->contains(key)) out[key] = (*first)[key];
  out["started"] = first->value("time", json::Value());
  out["records"] = last->value("seq", json::Value());
  const std::string_view end = audit::event_name(audit::Event::session_end);
  const bool ended = last->value("event", json::Value()) == end && !last->contains("file");
  out["end"] = ended ? last->value("reason", json::Value("ended")) : json::Value();
  return out;
}

// Becomes caisson-attest, which has libcrypto and the same command.
int verify_with_key(const Args& args, const Options& options) {
  std::vector<std::string> words{"caisson-attest", "--audit", options.audit, "audit", "verify", "--key=" + *args.last("--key")};
  if (options.json) words.emplace_back("--json");
  if (args.has("--complete")) words.emplace_back("--complete");
  words.emplace_back("--");
  words.insert(words.end(), args.words().begin(), args.words().end());
  return become("caisson-attest", words, options);
}

}  // namespace

Result<int> audit_verify(const Args& args, const Options& options) {
  if (args.has("--key") && g_check_signature == nullptr) return verify_with_key(args, options);
  Checked outcome;
  if (const Status status = verify(outcome, args, options); !status) {
    if (!options.json) print(outcome.text);
    return std::unexpected(status.error());
  }
  if (options.json) print_json({{"ok", outcome.ok}, {"logs", std::move(outcome.logs)}});
  else print(outcome.text);
  return outcome.ok ? 0 : kExitBrokenLog;
}

Result<int> audit_ls(const Args&, const Options& options) {
  const auto all = audit::logs_of(options.audit);
  if (!all) return std::unexpected(explain_access(all.error()));
  std::vector<json::Value> logs;
  for (const auto& [name, files] : *all) {
    if (!audit::is_launcher_log(name)) logs.push_back(summary(name, files));
    else
      for (const std::string& path : files) logs.push_back(summary(file_name(path), {path}));
  }
  const auto order = [](const json::Value& log) { return std::pair(log.value("started", json::Value()), log["log"]); };
  std::ranges::sort(logs, [&](const json::Value& a, const json::Value& b) { return order(a) < order(b); });
  if (options.json) return print_json({{"logs", std::move(logs)}}), 0;
  std::vector<std::vector<std::string>> rows = {{"LOG", "STARTED", "RECORDS", "BYTES", "END", "DOMAIN", "LABEL"}};
  for (const json::Value& log : logs) {
    auto& row = rows.emplace_back();
    for (const char* key : {"log", "started", "records", "bytes", "end", "domain", "label"})
      row.push_back(!log.contains(key) ? "-" : log[key].is_null() ? "open" : audit::show_value(log[key]));
  }
  print(table(rows));
  return 0;
}

}  // namespace caisson::cli
