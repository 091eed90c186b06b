// `caisson policy test`: every expectation of the files beside the policies, tried in a real session of its domain.
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/cli/args.h"
#include "launcher/cli/policy_files.h"
#include "launcher/cli/standalone.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/kernel/caps.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/fields.h"
#include "launcher/compiler/load.h"
#include "launcher/compiler/narrow.h"

namespace caisson::cli {
namespace {

constexpr int kAnswerMs = 30'000;

struct Verdict {
  bool holds = false;
  std::string why;
};

Verdict judge(const Expectation& e, const Finding& f) {
  std::string found = f.outcome == Outcome::worked    ? "worked"
                      : f.outcome == Outcome::refused ? errno_name(f.error)
                                                      : "undecided" + (f.error != 0 ? " " + errno_name(f.error) : "");
  if (!f.detail.empty()) found += " (" + f.detail + ")";
  if (e.can) return {f.outcome == Outcome::worked, found};
  if (f.outcome == Outcome::refused && e.error != 0 && e.error != f.error)
    return {false, found + ", expected " + errno_name(e.error)};
  return {f.outcome == Outcome::refused, found};
}

Result<Finding> ask(int fd, const std::string& request) {
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) return sys_error("ask the session");
  pollfd wait{fd, POLLIN, 0};
  const int ready = ::poll(&wait, 1, kAnswerMs);
  if (ready != 1) return fail(Code::timeout, "the session does not answer");
  std::string text(kMaxProbeMessage, '\0');
  const ssize_t n = ::recv(fd, text.data(), text.size(), 0);
  if (n <= 0) return fail(Code::io, "the session ended");
  TRY_ASSIGN(const json::Value answer, json::parse(std::string_view(text).substr(0, static_cast<std::size_t>(n))));
  Finding out;
  TRY_ASSIGN(const auto outcome, json::get_int(answer, "outcome"));
  TRY_ASSIGN(const auto error, json::get_int(answer, "errno"));
  TRY_ASSIGN(const auto detail, json::get_string(answer, "detail"));
  out.outcome = outcome.value_or(-1) == 0 ? Outcome::worked : outcome.value_or(-1) == 1 ? Outcome::refused : Outcome::failed;
  out.error = static_cast<int>(error.value_or(0));
  out.detail = detail.value_or("");
  return out;
}

std::uint64_t limit_value(const policy::Policy& p, const std::string& name) {
  const policy::Row* row = policy::find_row("/limits/" + name);
  return row != nullptr ? p.limits.*std::get<std::uint64_t policy::Limits::*>(row->member) : 0;
}

// A session of the file's domain, whose first process is this program.
Result<std::unique_ptr<Single>> session_of(const TestFile& file, const Options& options, SingleSession& session) {
  TRY_ASSIGN(session, SingleSession::load(options.policies, {file.domain, file.preset.empty() ? options.preset : file.preset}));
  // There is no workspace here to share them with.
  policy::Narrowing alone;
  alone.home_private = alone.tmp_private = true;
  policy::Policy shared = *session.loaded;
  for (policy::Scope* whose : {&shared.home, &shared.tmp})
    if (*whose == policy::Scope::read) *whose = policy::Scope::workspace;
  TRY_ASSIGN(session.policy, policy::narrow(std::make_shared<const policy::Policy>(std::move(shared)), alone));
  char self[4096];
  const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self);
  if (n <= 0) return sys_error("find this program");
  session.init_path.assign(self, static_cast<std::size_t>(n));
  return session.build();
}

struct Tally {
  std::size_t hold = 0, fail = 0, not_tried = 0;
  json::Value rows = json::Value::array();
};

void note(const TestFile& file, const Expectation& e, const Verdict* verdict, const std::string& why, Tally& tally,
          const Options& options) {
  const char* state = verdict == nullptr ? "not tried" : verdict->holds ? "ok" : "FAIL";
  ++(verdict == nullptr ? tally.not_tried : verdict->holds ? tally.hold : tally.fail);
  const std::string preset = file.preset.empty() ? options.preset : file.preset;
  if (options.json) {
    json::Value row{{"file", file.file}, {"line", e.line}, {"domain", file.domain}, {"preset", preset}};
    row["expectation"] = to_json(e);
    row["state"] = state;
    row["found"] = why;
    tally.rows.push_back(std::move(row));
    return;
  }
  std::string left = std::string(state) + (verdict != nullptr && verdict->holds ? "    " : "  ") + file.domain +
                     (preset.empty() ? "" : "@" + preset) + ": " + e.text();
  left.resize(std::max<std::size_t>(left.size(), 72), ' ');
  print(left + "  " + why +
        (verdict != nullptr && !verdict->holds ? "  [" + file.file + ":" + std::to_string(e.line) + "]" : "") + "\n");
}

void run_file(const TestFile& file, const Options& options, Tally& tally) {
  SingleSession session;
  auto built = session_of(file, options, session);
  if (built)
    if (const Status blocking = sys::set_nonblocking((*built)->started.socket.get(), false); !blocking)
      built = std::unexpected(blocking.error());
  if (!built) {
    for (const Expectation& e : file.expect) note(file, e, nullptr, "no session: " + built.error().text(), tally, options);
    return;
  }
  const policy::Policy& p = *session.policy;
  bool alive = true;
  for (const Expectation& e : file.expect) {
    json::Value request{{"expect", to_json(e)}, {"umask", p.umask}, {"cwd", p.home_path}, {"env", p.env.set}};
    if (e.verb == "exceed") request["limit_value"] = limit_value(p, e.object);
    const auto finding = alive ? ask((*built)->started.socket.get(), json::dump(request)) : fail(Code::io, "the session ended");
    if (!finding) {
      alive = false;
      note(file, e, nullptr, finding.error().text(), tally, options);
      continue;
    }
    const Verdict verdict = judge(e, *finding);
    note(file, e, &verdict, verdict.why, tally, options);
  }
}

}  // namespace

Result<int> policy_test(const Args& args, const Options& options) {
  TestFiles tests;
  const std::string folder = options.policies + "/tests";
  const TestFiles beside = load_tests(folder);
  const auto take = [&tests](const TestFiles& from, const std::string& domain) {
    for (const TestFile& file : from.files)
      if (domain.empty() || file.domain == domain) tests.files.push_back(file);
  };
  bool whole = args.words().empty();
  for (const std::string& word : args.words()) {
    if (!word.contains('/') && !word.ends_with(".json")) {
      const std::size_t before = tests.files.size();
      take(beside, word);
      if (tests.files.size() == before)
        return fail(Code::not_found, "no expectations for domain " + quote(word) + " in " + quote(folder));
      whole = true;  // a broken file may be the one that is asked for
      continue;
    }
    const TestFiles one = load_test_file(word);
    tests.problems.insert(tests.problems.end(), one.problems.begin(), one.problems.end());
    take(one, "");
  }
  if (args.words().empty()) take(beside, "");
  if (whole) tests.problems.insert(tests.problems.end(), beside.problems.begin(), beside.problems.end());
  if (!tests.problems.empty()) return show_problems(tests.problems, folder, options);
  if (tests.files.empty()) return fail(Code::not_found, "no expectations in " + quote(folder));

  confine::caps_prepare();
  Tally tally;
  for (const TestFile& file : tests.files) run_file(file, options, tally);
  const bool all = tally.fail == 0 && tally.not_tried == 0;
  if (options.json) {
    json::Value document{{"ok", all}, {"hold", tally.hold}, {"fail", tally.fail}, {"not_tried", tally.not_tried}};
    document["results"] = std::move(tally.rows);
    print_json(document);
  } else {
    print(std::to_string(tally.hold) + " hold, " + std::to_string(tally.fail) + " fail, " + std::to_string(tally.not_tried) +
          " not tried\n");
  }
  if (tally.fail > 0) return kExitExpectation;
  return all ? 0 : code_exit_status(Code::unavailable);
}

}  // namespace caisson::cli
