// caisson-cdp: holds Chromium by its debugging pipe, inside the session `browser`, and lets many clients share it (README.md). It
// has only the rights of the session. Exit status: 0 after `end` or the end of stdin; else as code_exit_status says.
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <map>

#include "agent/cdp/program.h"

namespace caisson::cdp {

Result<Options> read_options(const std::vector<std::string>& arguments) {
  Options out;
  std::string filters, dialogs;
  out.start.program = "/usr/lib/chromium/chromium";
  if (const char* home = ::getenv("HOME")) out.start.home = home;
  const std::map<std::string, std::string*> known = {{"--socket", &out.socket},       {"--policies", &out.policies},
                                                     {"--scratch", &out.scratch},     {"--profile", &out.start.profile},
                                                     {"--home", &out.start.home},     {"--program", &out.start.program},
                                                     {"--locale", &out.start.locale}, {"--url", &out.start.url},
                                                     {"--least-filters", &filters},   {"--file-dialogs", &dialogs}};
  std::size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; i += 2) {
    const auto option = known.find(arguments[i]);
    if (option == known.end()) return fail(Code::invalid_argument, "option is not known: " + quote(arguments[i]));
    if (i + 1 == arguments.size()) return fail(Code::invalid_argument, "option has no value: " + quote(arguments[i]));
    *option->second = arguments[i + 1];
  }
  if (i < arguments.size()) out.start.extra.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
  for (const auto* path : {&out.socket, &out.policies, &out.start.profile, &out.start.home, &out.start.program})
    if (!path->starts_with('/'))
      return fail(Code::invalid_argument, "socket, policies, profile, home and program are absolute paths");
  if (!out.start.locale.empty() && !is_locale(out.start.locale)) return fail(Code::invalid_argument, "locale is no language tag");
  if (!out.start.url.empty() && !is_first_url(out.start.url))
    return fail(Code::invalid_argument, "url is no address for the first page");
  if (!dialogs.empty() && dialogs != "true" && dialogs != "false")
    return fail(Code::invalid_argument, "file-dialogs is true or false");
  if (!dialogs.empty()) out.allow_file_selection_dialogs = dialogs == "true";
  if (!filters.empty()) {
    if (filters.size() > 2 || filters.find_first_not_of("0123456789") != std::string::npos || filters == "0")
      return fail(Code::invalid_argument, "least-filters is no number from 1 to 99");
    out.least_filters = std::stoul(filters);
  }
  TRY(check_extra(out.start.extra, out.start.home));
  return out;
}

namespace {

Status work(const std::vector<std::string>& arguments) {
  TRY_ASSIGN(Options options, read_options(arguments));
  ::signal(SIGPIPE, SIG_IGN);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return sys_error("become the reaper of what the browser leaves");
  TRY_ASSIGN(const auto loop, Loop::create({SIGTERM, SIGINT}));
  Program program(*loop, std::move(options));
  return program.run();
}

}  // namespace
}  // namespace caisson::cdp

int main(int argc, char** argv) {
  const auto worked = caisson::cdp::work({argv + 1, argv + argc});
  if (worked) return 0;
  // On stdout for the agent, on stderr for a person.
  const std::string why = worked.error().text();
  std::printf("%s\n", caisson::json::dump({{"event", "failed"}, {"why", why}}).c_str());
  std::fprintf(stderr, "caisson-cdp: %s\n", why.c_str());
  return caisson::code_exit_status(worked.error().code);
}
