// `caisson run`: one command in a session of its own, without a server. The same policy, plan and children as the launcher's
// sessions, built in one go. Where the caller's stdin and stdout are terminals the command gets a terminal of its own.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/relay.h"
#include "launcher/cli/standalone.h"
#include "launcher/common/base/hash.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/loop.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/confine/canary.h"
#include "launcher/common/confine/environment.h"
#include "launcher/common/confine/fork_refusal.h"
#include "launcher/common/confine/init_link.h"
#include "launcher/common/confine/verify.h"
#include "launcher/common/kernel/caps.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/text_formats.h"

namespace caisson::cli {
namespace {

constexpr int kExitNotRun = 125;

constexpr Flag kFlags[] = {
    {"--policy", "-p", true}, {"--grant", "-g", true}, {"--cwd", "-C", true}, {"--env", "-e", true}, {"--report", "", true}};

struct Run {
  SingleSession session;
  std::vector<std::string> command, env;
  std::string cwd;
  std::string report_file;
};

// PATH, PATH:ro, PATH:rw, PATH:rx, PATH:rwx. Unlike a client of the API, who can only narrow, the caller of `caisson run` is
// the operator: a grant of theirs is added to the policy's, or replaces the one of the same path.
Result<policy::Grant> parse_grant(const std::string& text) {
  policy::Grant grant;
  const auto colon = text.rfind(':');
  const std::string mode = colon == std::string::npos ? "ro" : text.substr(colon + 1);
  grant.path = text.substr(0, colon);
  if (mode != "ro" && mode != "rw" && mode != "rx" && mode != "rwx")
    return fail(Code::invalid_argument, "--grant " + quote(text) + ": access must be ro, rw, rx or rwx");
  grant.access = mode[1] == 'w' ? policy::Access::read_write : policy::Access::read;
  grant.execute = mode.back() == 'x';
  if (const auto fault = policy::form_fault(policy::Form::path, grant.path))
    return fail(Code::invalid_argument, "--grant " + quote(text) + ": " + fault->what);
  grant.source = grant.path;
  grant.description = "caisson run --grant";
  return grant;
}

Result<std::shared_ptr<const policy::Policy>> widen(std::shared_ptr<const policy::Policy> policy,
                                                    const std::vector<std::string>& grants) {
  if (grants.empty()) return policy;
  auto widened = std::make_shared<policy::Policy>(*policy);
  for (const std::string& text : grants) {
    TRY_ASSIGN(policy::Grant grant, parse_grant(text));
    // What the session makes itself would cover such a grant, or be replaced by it: refused as in a policy file.
    if (grant.path == "/tmp" || grant.path == widened->home_path || policy::inside(grant.path, "/proc") ||
        policy::inside(grant.path, "/dev"))
      return fail(Code::invalid_argument, "--grant " + quote(text) + ": the session has its own " + quote(grant.path));
    std::erase_if(widened->grants, [&grant](const policy::Grant& g) { return g.path == grant.path; });
    widened->grants.push_back(std::move(grant));
  }
  std::ranges::sort(widened->grants, {}, &policy::Grant::path);
  widened->digest = policy::digest_of(*widened);
  return widened;
}

Result<Run> parse(Arguments args, Options& options) {
  std::vector<std::string> own;
  std::size_t at = 0;
  Run run;
  for (; at < args.size() && args[at] != "--"; ++at) {
    if (args[at].empty() || args[at][0] != '-') break;
    TRY_ASSIGN(const bool global, take_global(args, at, options));
    if (global) {
      --at;
      continue;
    }
    own.push_back(args[at]);
    const bool takes_value =
        std::ranges::any_of(kFlags, [&](const Flag& f) { return args[at] == f.name || args[at] == f.short_name; });
    if (takes_value && at + 1 < args.size()) own.push_back(args[++at]);
  }
  if (at < args.size() && args[at] == "--") ++at;
  run.command.assign(args.begin() + static_cast<std::ptrdiff_t>(at), args.end());
  if (options.help) return run;
  if (run.command.empty()) return fail(Code::invalid_argument, "no command; usage: caisson run --policy DOMAIN -- COMMAND");
  TRY_ASSIGN(const Args parsed, Args::parse(own, kFlags, 0, 0));
  TRY_ASSIGN(run.session, SingleSession::load(options.policies, {parsed.last("--policy").value_or("run"), options.preset}));
  TRY_ASSIGN(run.session.policy, widen(run.session.loaded, parsed.all("--grant")));
  if (const char* given = std::getenv("CAISSON_INIT")) run.session.init_path = given;
  run.report_file = parsed.last("--report").value_or("");
  run.cwd = parsed.last("--cwd").value_or(run.session.policy->home_path);
  std::map<std::string, std::optional<std::string>> asked;
  for (const std::string& pair : parsed.all("--env")) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(Code::invalid_argument, "--env " + quote(pair) + ": must be NAME=VALUE");
    asked[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  TRY_ASSIGN(run.env, session::make_environment(run.session.policy->env, asked));
  return run;
}

int exit_code(const init::Reply& reply) { return reply.signaled != 0 ? 128 + reply.status : reply.status; }

// Runs the command and returns its status.
Result<int> execute(const Run& run, Single& s, Loop& loop) {
  confine::InitLink link(std::move(s.started.socket));
  const bool terminal = ::isatty(0) == 1 && ::isatty(1) == 1;
  std::unique_ptr<Relay> relay;
  Result<int> outcome = fail(Code::internal, "the session ended before the command");

  // Not after `ready`: the request waits in the socket, not we for caisson-init.
  confine::ExecRequest request{1, run.command, run.env, run.cwd, terminal, 80, 24, run.session.policy->umask};
  winsize size{};
  if (terminal && ::ioctl(0, TIOCGWINSZ, &size) == 0) request.cols = size.ws_col, request.rows = size.ws_row;
  const int stdio[3] = {0, 1, 2};
  TRY(link.exec(request, stdio));
  TRY(link.go(request.id));

  auto handle = [&](confine::InitEvent event) -> Status {
    switch (event.reply.type) {
      case init::Type::ready:
        return {};
      case init::Type::started:
        if (terminal) {
          TRY_ASSIGN(relay, Relay::start(std::move(event.fd), loop));
        }
        return {};
      case init::Type::failed:
        outcome = sys_error(std::string(init::step_name(event.reply.step)) + " " +
                                quote(event.reply.step == init::Step::chdir ? run.cwd : run.command[0]) +
                                (event.reply.step == init::Step::fork ? confine::fork_refusal(event.reply.error) : ""),
                            event.reply.error);
        loop.stop();
        return {};
      case init::Type::exited:
        outcome = exit_code(event.reply);
        if (relay) relay->drain();
        loop.stop();
        return {};
      default:
        return fail(Code::protocol, "unexpected message from caisson-init");
    }
  };
  TRY(loop.watch(link.fd(), EPOLLIN, [&](std::uint32_t) {
    for (;;) {
      auto event = link.receive();
      if (event && !*event) return;
      Status done = event ? handle(std::move(**event)) : std::unexpected(std::move(event).error());
      if (done) continue;
      outcome = std::unexpected(std::move(done).error());
      return loop.stop();
    }
  }));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    loop.on_signal(signal, [&link, signal] { (void)link.signal(1, signal, init::Scope::group); });
  loop.on_signal(SIGWINCH, [&relay] {
    if (relay) relay->resize();
  });
  TRY(loop.run());
  loop.unwatch(link.fd());
  return outcome;
}

// The report names what verified each mechanism in this run. No canary runs: the kernel shows that there is a filter, not which.
caisson::json::Value report_of(const Single& s) {
  confine::ProbeResults canary;
  canary.fill({.error = confine::kNotAsked});
  auto report = confine::report_json(*s.plan, s.verified, {}, s.steps, &canary);
  for (auto& row : report["mechanisms"])
    if (row["name"] == mechanism_name(Mechanism::seccomp) && row.contains("verified"))
      row["verified"].push_back({{"by", "construction"},
                                 {"what", s.kept ? "filter kept by root of the same policy files, in a cache of root alone"
                                                 : "filter compiled of the policy files in this run"},
                                 {"result", "done"}});
  return report;
}

}  // namespace

int run_main(Arguments args, const Options& given) {
  Options options = given;
  auto run = parse(args, options);
  if (options.help) return show_help("run");
  if (!run) {
    report_error(run.error(), options);
    return kExitNotRun;
  }
  confine::caps_prepare();
  auto loop = Loop::create({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH});
  if (!loop) return report_error(loop.error(), options), kExitNotRun;
  auto session = run->session.build();
  if (!session) return report_error(std::move(session.error()).wrap("the session was not started"), options), kExitNotRun;
  if (!run->report_file.empty()) {
    auto file = sys::open(run->report_file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!file) return report_error(file.error(), options), kExitNotRun;
    const auto report = report_of(**session);
    (void)sys::write_all(file->get(), caisson::json::dump(report, 2) + "\n");
  }
  const auto status = execute(*run, **session, **loop);
  session->reset();
  if (!status) return report_error(status.error(), options), kExitNotRun;
#ifndef CAISSON_SANITIZED  // which looks for leaks at the end
  // The kernel takes all memory back at once; piece by piece it is 3 % of a `caisson run -- true`.
  std::fflush(nullptr);
  ::_exit(*status);
#else
  return *status;
#endif
}

}  // namespace caisson::cli
