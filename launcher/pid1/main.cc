// caisson-launcher: the container's first process. Reads the policies, prepares confinement, runs the agent, answers it.
// The only file that ends the process.
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>
#include <utility>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/query.h"
#include "launcher/common/kernel/caps.h"
#include "launcher/common/policy/frozen.h"
#include "launcher/pid1/agent_process.h"
#include "launcher/pid1/control.h"
#include "launcher/pid1/options.h"
#include "launcher/pid1/session/operations.h"

namespace caisson {
namespace {

[[noreturn]] void die(const Error& error) {
  std::fprintf(stderr, "caisson-launcher: %s\n", error.text().c_str());
  std::exit(code_exit_status(error.code));
}

// What is inherited by everything that the launcher starts.
Status prepare_process() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);  // errors of write are not our end
  ::umask(022);
  // Root in a user namespace without CAP_SETGID has none to drop; the child verifies what is left.
  if (::geteuid() == 0 && ::setgroups(0, nullptr) != 0 && errno != EPERM) return sys_error("setgroups");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return sys_error("prctl PR_SET_CHILD_SUBREAPER");
  // In T1 sessions have our uid: nothing of us may be read or traced by them.
  if ((::geteuid() != 0 || !confine::caps_change_uid()) && ::prctl(PR_SET_DUMPABLE, 0) != 0)
    return sys_error("prctl PR_SET_DUMPABLE");
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return sys_error("setrlimit RLIMIT_NOFILE");
  }
  confine::caps_prepare();
  return {};
}

void say_tier(const confine::Features& features) {
  const std::string tier(tier_name(features.tier()));
  std::fprintf(stderr, "caisson-launcher %s: tier %s (kernel %s, Landlock ABI %d)\n", CAISSON_VERSION, tier.c_str(),
               features.kernel.c_str(), features.landlock_abi);
  for (const std::string& why : confine::why_not_higher(features)) std::fprintf(stderr, "  %s\n", why.c_str());
}

// Of our arguments and our environment.
Result<Options> read_options(Loop& loop, int argc, char** argv) {
  confine::Question question{
      .program = "caisson-options", .arguments = {argv + 1, argv + argc}, .request = {}, .most = 8U << 20, .deadline_ms = 30'000};
  for (char** variable = environ; *variable != nullptr; ++variable) question.request.append(*variable).push_back('\0');
  auto asked = confine::ask(loop, std::move(question));
  TRY(loop.run([&asked] { return asked.done(); }));
  TRY_ASSIGN(const std::string bytes, asked.take());
  policy::Reader reader(bytes);
  std::string mark;
  Options options;
  reader(mark, options);
  if (mark != policy::frozen_mark() || !reader.whole()) return fail(Code::protocol, "caisson-options is of another version");
  if (options.text.empty()) return options;
  std::exit(std::fputs(options.text.c_str(), options.status == 0 ? stdout : stderr) < 0 ? 10 : options.status);
}

Status run(int argc, char** argv) {
  TRY(prepare_process());
  TRY_ASSIGN(const auto loop, Loop::create({SIGTERM, SIGINT, SIGHUP}));
  TRY_ASSIGN(Options options, read_options(*loop, argc, argv));
  options.mount_table = sys::read_file("/proc/self/mountinfo", 4U << 20).value_or("");
  TRY_ASSIGN(const auto operations, session::Operations::create(options, *loop));
  say_tier(operations->features());
  Fd control;
  if (::geteuid() == 0 && confine::caps_change_uid()) {
    TRY_ASSIGN(control, serve_control(options.run_dir + "/control.sock", *operations, *loop));
  } else {
    std::fprintf(stderr, "caisson-launcher: no control socket: sessions have our uid and could use it\n");
  }
  AgentProcess agent(options, *operations, *loop);
  TRY(agent.start());
  operations->on_restart([&] { agent.restart(); });
  std::fputs(options.greeting.c_str(), stderr);

  bool stopping = false, refused = false;
  const auto stop = [&] {
    if (!std::exchange(stopping, true)) agent.stop([&] { operations->shut_down([&] { loop->stop(); }); });
  };
  agent.on_refusal([&] { refused = true, stop(); });
  for (const int signal : {SIGTERM, SIGINT}) loop->on_signal(signal, stop);
  loop->on_signal(SIGHUP, [&] {
    operations->reload("SIGHUP", [](const auto& problems) {
      sys::say(problems.empty() ? "caisson-launcher: policies reloaded"
                                : "caisson-launcher: the policies have problems, the old ones stay:");
      for (const auto& p : problems) sys::say("  " + p.text());
    });
    agent.restart(true);
  });
  TRY(loop->run());
  return refused ? Status(fail(Code::invalid_argument, "the agent refuses its settings, as it says above")) : Status{};
}

}  // namespace
}  // namespace caisson

int main(int argc, char** argv) {
  if (const caisson::Status status = caisson::run(argc, argv); !status) caisson::die(status.error());
  return 0;
}
