// `caisson run`: one command in a session of its own, without a server. The same policy, plan and children as the launcher's
// sessions, built in one go. Where the caller's stdin and stdout are terminals the command gets a terminal of its own.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "launcher/base/hash.h"
#include "launcher/base/json.h"
#include "launcher/base/loop.h"
#include "launcher/base/sys.h"
#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/frozen.h"
#include "launcher/cli/relay.h"
#include "launcher/confine/build.h"
#include "launcher/confine/caps.h"
#include "launcher/confine/faults.h"
#include "launcher/confine/verify.h"
#include "launcher/policy/load.h"
#include "launcher/policy/words.h"
#include "launcher/session/environment.h"
#include "launcher/session/init_link.h"

namespace caisson::cli {
namespace {

constexpr int kExitNotRun = 125;
constexpr uid_t kRunUid = 20000;  // outer uid of `caisson run` as root: owns nothing

constexpr Flag kFlags[] = {
    {"--policy", "-p", true}, {"--grant", "-g", true}, {"--cwd", "-C", true}, {"--env", "-e", true}, {"--report", "", true}};

struct Run {
  std::string policies, domain;
  std::optional<Frozen> frozen;                  // where it is, `loaded` is its policy, without the rules
  std::shared_ptr<const policy::Policy> loaded;  // as the files say
  std::shared_ptr<const policy::Policy> policy;  // with the --grants
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

Result<std::shared_ptr<const policy::Policy>> read_policy(const Run& run) {
  policy::LoadResult loaded = policy::load_directory(run.policies, run.domain);
  if (!loaded.problems.empty()) {
    std::string text = "the policies have problems:";
    for (const auto& p : loaded.problems) text += "\n  " + p.text();
    return fail(Code::invalid_argument, text);
  }
  const auto it = loaded.policies.find(run.domain);
  if (it == loaded.policies.end()) return fail(Code::not_found, "no policy " + quote(run.domain) + " in " + run.policies);
  return it->second;
}

Result<std::shared_ptr<const policy::Policy>> widen(std::shared_ptr<const policy::Policy> policy,
                                                    const std::vector<std::string>& grants) {
  if (grants.empty()) return policy;
  auto widened = std::make_shared<policy::Policy>(*policy);
  for (const std::string& text : grants) {
    TRY_ASSIGN(policy::Grant grant, parse_grant(text));
    // What the session makes itself would cover such a grant, or be replaced by it: refused as in a policy file.
    if (grant.path == "/tmp" || grant.path == widened->home_path || (grant.path + "/").starts_with("/proc/") ||
        (grant.path + "/").starts_with("/dev/"))
      return fail(Code::invalid_argument, "--grant " + quote(text) + ": the session has its own " + quote(grant.path));
    std::erase_if(widened->grants, [&grant](const policy::Grant& g) { return g.path == grant.path; });
    widened->grants.push_back(std::move(grant));
  }
  std::ranges::sort(widened->grants, {}, &policy::Grant::path);
  widened->digest = sha256_hex(caisson::json::dump(policy::to_json(*widened)));
  return widened;
}

// The filter compiled when the policy was frozen, where it fits this plan; else a new one from the files.
Result<confine::Program> filter(const Run& run, const confine::Plan& plan) {
  const auto enforced = confine::enforced_mechanisms(plan);
  const auto needs = filter_needs(*run.loaded, enforced);
  if (run.frozen && run.frozen->needs == needs) return run.frozen->filter;
  std::shared_ptr<const policy::Policy> whole = run.loaded;
  if (run.frozen) {
    TRY_ASSIGN(whole, read_policy(run));
    if (whole->digest != run.loaded->digest)
      return fail(Code::unavailable, "the policies changed while the session was being made: try again");
  }
  TRY_ASSIGN(auto program, confine::compile_seccomp(policy::effective_sets(*whole, enforced)));
  FrozenPolicies(run.policies, run.domain).store({whole, needs, program});
  return program;
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
  run.policies = options.policies;
  run.domain = parsed.last("--policy").value_or("run");
  run.frozen = FrozenPolicies(run.policies, run.domain).load();
  if (run.frozen) {
    run.loaded = run.frozen->policy;
  } else {
    TRY_ASSIGN(run.loaded, read_policy(run));
  }
  TRY_ASSIGN(run.policy, widen(run.loaded, parsed.all("--grant")));
  run.report_file = parsed.last("--report").value_or("");
  run.cwd = parsed.last("--cwd").value_or(run.policy->home_path);
  std::map<std::string, std::optional<std::string>> asked;
  for (const std::string& pair : parsed.all("--env")) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(Code::invalid_argument, "--env " + quote(pair) + ": must be NAME=VALUE");
    asked[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  TRY_ASSIGN(run.env, session::make_environment(run.policy->env, asked));
  return run;
}

std::string init_path() {
  const char* given = std::getenv("CAISSON_INIT");
  return given != nullptr ? given : sys::program_path("caisson-init");
}

struct Session {
  std::shared_ptr<const confine::Plan> plan;
  confine::Program seccomp;
  confine::Started started;
  std::vector<confine::StepRecord> steps;
  confine::Verified verified;
  ~Session() {
    if (started.child_pid <= 0) return;
    // The first process ends with its socket at the latest; its PID namespace and everything in it end with it.
    (void)sys::pidfd_send_signal(started.child.get(), SIGKILL);
    while (::waitpid(started.child_pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
};

// Reads the step records to their end, which is the exec of caisson-init. Behind the filter nothing but that exec is left:
// the facts are read while it happens.
Status read_steps(Session& s) {
  TRY(sys::set_nonblocking(s.started.status.get(), false));
  confine::verify_prepare();  // while the child is at work
  confine::StepRecord record;
  Result<confine::Verified> verified = fail(Code::internal, "the session's child ended early");
  while (::read(s.started.status.get(), &record, sizeof record) == static_cast<ssize_t>(sizeof record)) {
    if (record.error != 0) return std::unexpected(confine::step_error(*s.plan, record));
    s.steps.push_back(record);
    // A child whose exec fails may be gone before it is looked at: then the record that follows says why.
    if (record.step == confine::Step::seccomp) verified = confine::verify_session(*s.plan, s.started.child_pid, s.steps);
  }
  if (!verified && !confine::faults::blind()) return std::unexpected(std::move(verified).error());
  if (verified) s.verified = std::move(*verified);
  return {};
}

Result<std::unique_ptr<Session>> build(const Run& run, confine::Features features) {
  // A cgroup of one command's own would have to be made in a tree that belongs to whoever called us.
  features.cgroup = {ENOTSUP, "cgroup v2"};
  features.cgroup_reason = "caisson run makes no cgroup";
  auto s = std::make_unique<Session>();
  TRY_ASSIGN(const confine::Sources sources, confine::resolve_sources(*run.policy));
  const confine::Place place{"", "", init_path()};
  TRY_ASSIGN(s->plan, confine::make_plan(run.policy, features, sources, place));
  TRY_ASSIGN(s->seccomp, filter(run, *s->plan));
  confine::Builder builder;
  TRY_ASSIGN(builder.init_exe, sys::open(place.init_path, O_PATH));
  TRY_ASSIGN(builder.null, sys::open("/dev/null", O_RDWR));
  builder.root_dir = "/tmp";  // covered in the child's own mount namespace only, after every grant was opened
  const uid_t uid = ::geteuid() == 0 ? kRunUid : ::geteuid();
  const gid_t gid = ::geteuid() == 0 ? kRunUid : ::getegid();
  TRY_ASSIGN(s->started, builder.start_single(*s->plan, s->seccomp, uid, gid, -1));
  TRY(read_steps(*s));
  return s;
}

// First as if everything worked, which saves the probe's ten children; when a step says otherwise, once more from facts.
Result<std::unique_ptr<Session>> build_best(const Run& run) {
  auto first = build(run, confine::optimistic_features());
  if (first) return first;
  const confine::Features features = confine::probe_features();
  if (features.tier() == Tier::t3) return first;
  return build(run, features);
}

int exit_code(const init::Reply& reply) { return reply.signaled != 0 ? 128 + reply.status : reply.status; }

// Runs the command and returns its status.
Result<int> execute(const Run& run, Session& s, Loop& loop) {
  session::InitLink link(std::move(s.started.socket));
  const bool terminal = ::isatty(0) == 1 && ::isatty(1) == 1;
  std::unique_ptr<Relay> relay;
  Result<int> outcome = fail(Code::internal, "the session ended before the command");

  // Not after `ready`: the request waits in the socket, not we for caisson-init.
  session::ExecRequest request{1, run.command, run.env, run.cwd, terminal, 80, 24, run.policy->umask};
  winsize size{};
  if (terminal && ::ioctl(0, TIOCGWINSZ, &size) == 0) request.cols = size.ws_col, request.rows = size.ws_row;
  const int stdio[3] = {0, 1, 2};
  TRY(link.exec(request, stdio));

  auto handle = [&](session::InitEvent event) -> Status {
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
                                quote(event.reply.step == init::Step::chdir ? run.cwd : run.command[0]),
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
  auto session = build_best(*run);
  if (!session) return report_error(std::move(session.error()).wrap("the session was not started"), options), kExitNotRun;
  if (!run->report_file.empty()) {
    auto file = sys::open(run->report_file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!file) return report_error(file.error(), options), kExitNotRun;
    const auto report = confine::report_json(*(*session)->plan, (*session)->verified, {}, (*session)->steps);
    (void)sys::write_all(file->get(), caisson::json::dump(report, 2) + "\n");
  }
  const auto status = execute(*run, **session, **loop);
  session->reset();
  if (!status) return report_error(status.error(), options), kExitNotRun;
  return *status;
}

}  // namespace caisson::cli
