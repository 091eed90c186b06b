// `caisson audit verify` and `audit ls`. Reads only.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launcher/audit/lines.h"
#include "launcher/audit/log.h"
#include "launcher/audit/show.h"
#include "launcher/audit/verify.h"
#include "launcher/base/sys.h"
#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/logs.h"

namespace caisson::cli {
namespace {

struct Outcome {
  bool ok = true;
  json::Value logs = json::Value::array();
  std::string text;
};

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void add(Outcome& outcome, const std::string& path, const audit::Verification& v, bool complete) {
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
  if (v.expected_checked && v.verdict != audit::Verdict::broken) outcome.text += ", count and head as in the launcher's log";
  outcome.text += "\n";
  for (const audit::Finding& f : v.findings)
    outcome.text += "  line " + std::to_string(f.line) + ", byte " + std::to_string(f.offset) + ": " + f.what + "\n";
}

Status check(Outcome& outcome, const std::string& path, const audit::Index& index, bool complete) {
  const auto at = index.find(file_name(path));
  auto verification = audit::verify_file(path, at == index.end() ? std::nullopt : std::optional(at->second));
  if (!verification) return std::unexpected(explain_access(std::move(verification.error())));
  add(outcome, path, *verification, complete);
  return {};
}

Status check_directory(Outcome& outcome, const std::string& directory, bool complete) {
  // The index before the names: a session that ends in between is then one that the index does not know yet.
  TRY_ASSIGN(const audit::Index index, audit::read_index(directory));
  TRY_ASSIGN(const std::vector<std::string> names, log_names(directory));
  if (names.empty()) return fail(Code::not_found, "no audit logs in " + quote(directory));
  for (const std::string& name : names) TRY(check(outcome, directory + "/" + name, index, complete));
  for (const auto& [name, expected] : index) {
    if (std::ranges::find(names, name) != names.end()) continue;
    audit::Verification missing{.verdict = audit::Verdict::broken, .expected_checked = true};
    missing.findings.push_back({0, 0, "missing: the launcher's log counts " + std::to_string(expected.count) + " records in it"});
    add(outcome, directory + "/" + name, missing, complete);
  }
  return {};
}

Status verify(Outcome& outcome, Arguments words, const Options& options) {
  static constexpr Flag kFlags[] = {{"--complete", "", false}};
  TRY_ASSIGN(const Args args, Args::parse(words, kFlags, 0, 1000));
  const bool complete = args.has("--complete");
  if (args.words().empty()) {
    auto status = check_directory(outcome, options.audit, complete);
    return status ? status : Status(std::unexpected(explain_access(std::move(status.error()))));
  }
  for (const std::string& word : args.words()) {
    const std::string path = log_path(options.audit, word);
    const auto index = audit::read_index(path.substr(0, path.rfind('/') + 1));
    TRY(check(outcome, path, index ? *index : audit::Index{}, complete));
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

json::Value summary(const std::string& directory, const std::string& name) {
  json::Value out = json::Value::object();
  out["log"] = name.substr(0, name.size() - std::string_view(".ndjson").size());
  auto lines = audit::Lines::open(directory + "/" + name);
  struct stat st{};
  if (!lines || ::fstat(lines->fd().get(), &st) != 0) return out;
  out["bytes"] = st.st_size;
  const auto last = last_record(lines->fd().get(), static_cast<std::uint64_t>(st.st_size));
  const auto line = lines->next();
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

}  // namespace

int audit_verify(Arguments args, const Options& options) {
  Outcome outcome;
  if (const Status status = verify(outcome, args, options); !status) {
    if (!options.json) print(outcome.text);
    return report_error(status.error(), options);
  }
  json::Value document = json::Value::object();
  document["ok"] = outcome.ok;
  document["logs"] = std::move(outcome.logs);
  if (options.json) print_json(document);
  else print(outcome.text);
  return outcome.ok ? 0 : kExitBrokenLog;
}

int audit_ls(Arguments args, const Options& options) {
  if (const auto parsed = Args::parse(args, {}, 0, 0); !parsed) return report_error(parsed.error(), options);
  const auto names = log_names(options.audit);
  if (!names) return report_error(explain_access(names.error()), options);
  std::vector<json::Value> logs;
  for (const std::string& name : *names) logs.push_back(summary(options.audit, name));
  const auto order = [](const json::Value& log) { return std::pair(log.value("started", json::Value()), log["log"]); };
  std::ranges::sort(logs, [&](const json::Value& a, const json::Value& b) { return order(a) < order(b); });
  if (options.json) {
    json::Value document = json::Value::object();
    document["logs"] = std::move(logs);
    print_json(document);
    return 0;
  }
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
