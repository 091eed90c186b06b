#include "launcher/cli/learn/records.h"

#include <fcntl.h>

#include "launcher/cli/logs.h"
#include "launcher/common/audit_lines/lines.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"
#include "launcher/compiler/load.h"

namespace caisson::cli::learn {
namespace {

// each(record) -> whether to go on.
template <class Each>
Status read_log(const Options& options, const std::string& log, const Each& each) {
  auto lines = LogReader::open(log_files(options.audit, log));
  if (!lines) return std::unexpected(explain_access(std::move(lines.error())));
  for (;;) {
    TRY_ASSIGN(const auto line, lines->next());
    if (!line) return {};
    const auto record = line->whole ? audit::parse_record(line->text) : fail(Code::limit, "");
    if (record && !each(*record)) return {};
  }
}

}  // namespace

Result<std::shared_ptr<const policy::Policy>> find_policy(const std::string& directory, const std::string& domain) {
  policy::LoadResult loaded = policy::load_directory(directory);
  if (!loaded.problems.empty()) return fail(Code::invalid_argument, "the policies have problems: " + loaded.problems[0].text());
  const auto at = loaded.policies.find(domain);
  if (at == loaded.policies.end()) return fail(Code::not_found, "no policy " + quote(domain) + " in " + directory);
  return at->second;
}

Status read_names(const Options& options, const std::string& log, Names& names) {
  return read_log(options, log, [&names](const json::Value& record) { return names.take(record), true; });
}

Result<int> learn_from_records(const Options& options, const std::string& log, std::optional<std::string> domain,
                               const std::optional<std::string>& output) {
  if (!domain) {
    TRY(read_log(options, log, [&domain](const json::Value& record) {
      if (json::text_of(record, "event") == "session_request") domain = json::text_of(record, "domain");
      return false;  // a session's log begins with it
    }));
    if (!domain) return fail(Code::invalid_argument, "the log is of no session: say of which domain by --policy");
  }
  TRY_ASSIGN(const auto policy, find_policy(options.policies, *domain));
  Names names(*policy);
  TRY(read_names(options, log, names));
  const std::string source = "the records of " + log.substr(log.rfind('/') + 1);
  json::Value file = {{"description", "Names learnt from " + source}, {"extends", *domain}};
  names.add_to(file, source);
  if (output) {
    TRY_ASSIGN(const Fd fd, sys::open(*output, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
    TRY(sys::write_all(fd.get(), json::dump(file, 2) + "\n"));
  }
  if (options.json) {
    print_json({{"policy", file}, {"notes", names.notes()}});
    return 0;
  }
  std::string report = "against policy " + quote(*domain) + ":\n" + names.difference();
  if (names.empty()) report += "no name was asked for that a rule could allow\n";
  for (const std::string& note : names.notes()) report += "! " + quote(note, 400) + "\n";
  (void)sys::write_all(2, report);
  if (!output) print(json::dump(file, 2) + "\n");
  return 0;
}

}  // namespace caisson::cli::learn
