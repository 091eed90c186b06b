// `caisson audit stats` and `audit export`: over one log or all of them. Reads only.
#include <cstdio>

#include "launcher/cli/args.h"
#include "launcher/cli/audit/ocsf.h"
#include "launcher/cli/audit/show.h"
#include "launcher/cli/audit/stats.h"
#include "launcher/cli/audit/verify.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/logs.h"
#include "launcher/common/base/sys.h"

namespace caisson::cli {
namespace {

std::string name_of(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.substr(0, file.size() - std::min(file.size(), std::string_view(".ndjson").size()));
}

// The logs that the words name; none: all, by their names.
Result<std::map<std::string, std::vector<std::string>>> chosen(const std::vector<std::string>& words, const Options& options) {
  std::map<std::string, std::vector<std::string>> out;
  if (words.empty()) {
    TRY_ASSIGN(const audit::Logs logs, audit::logs_of(options.audit));
    for (const auto& [name, files] : logs) out[name_of(name)] = files;
  }
  for (const std::string& word : words) out[name_of(log_path(options.audit, word))] = log_files(options.audit, word);
  return out;
}

// Every record of a log that the filter takes, with its line. Lines that are no records are counted.
template <class F>
Status each(const std::vector<std::string>& files, const audit::Filter& filter, std::uint64_t& broken, F&& take) {
  TRY_ASSIGN(LogReader reader, LogReader::open(files));
  for (;;) {
    TRY_ASSIGN(const auto line, reader.next());
    if (!line) return {};
    const auto record = line->whole ? audit::parse_record(line->text) : fail(Code::limit, "too long");
    if (!record) ++broken;
    else if (filter.match(*record)) take(*record, line->text);
  }
}

struct Counted {
  json::Value sessions = json::Value::object();
  audit::Stats total;
  std::uint64_t broken = 0;
};

Result<Counted> count(const Args& args, const Options& options) {
  TRY_ASSIGN(const audit::Filter filter, filter_of(args));
  TRY_ASSIGN(const auto logs, chosen(args.words(), options));
  Counted out;
  for (const auto& [name, files] : logs) {
    audit::Stats stats;
    TRY(each(files, filter, out.broken,
             [&](const json::Value& record, std::string_view line) { stats.add(record, line.size() + 1); }));
    out.sessions[name] = stats.to_json();
    out.total.add(stats);
  }
  return out;
}

Result<std::uint64_t> write_all(const Args& args, const Options& options) {
  const std::string format = args.last("--format").value_or("ndjson");
  if (format != "ocsf" && format != "ndjson")
    return fail(Code::invalid_argument, "--format is ocsf or ndjson, not " + quote(format));
  TRY_ASSIGN(const audit::Filter filter, filter_of(args));
  TRY_ASSIGN(const auto logs, chosen(args.all("--session"), options));
  std::uint64_t broken = 0;
  for (const auto& [name, files] : logs)
    TRY(each(files, filter, broken, [&, &log = name](const json::Value& record, std::string_view) {
      json::Value out = format == "ocsf" ? audit::ocsf(record, log) : record;
      if (format == "ndjson") out["log"] = log;
      print(out.dump(-1, ' ', true, json::Value::error_handler_t::replace) + "\n");
    }));
  return broken;
}

}  // namespace

Result<int> audit_stats(const Args& args, const Options& options) {
  const auto counted = count(args, options);
  if (!counted) return std::unexpected(explain_access(counted.error()));
  const json::Value document{{"logs", counted->sessions}, {"total", counted->total.to_json()}};
  print_document(document, options);
  return status_of(counted->broken);
}

Result<int> audit_export(const Args& args, const Options& options) {
  const auto broken = write_all(args, options);
  if (!broken) return std::unexpected(explain_access(broken.error()));
  return status_of(*broken);
}

}  // namespace caisson::cli
