#include "agent/services/program/run_once.h"

#include <algorithm>

#include "agent/services/program/command.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

// The launcher enforces the limit; this grace covers a launcher that does not report the end.
constexpr std::chrono::seconds kRunGrace{10};
constexpr const char* kSystemPython = "/usr/bin/python3";
constexpr std::size_t kMostSaid = 200;  // of its errors, in a message

task<OneResult> run_in(bridge::LauncherClient& launcher, std::shared_ptr<bridge::SessionHandle> session, OneRun what) {
  bridge::ExecRequest request;
  if (!what.script.empty()) {
    if (session->tools.empty()) co_return fail(Code::unavailable, "sessions do not see the agent's tools here");
    what.argv.insert(what.argv.begin(), {kSystemPython, "-I", session->tools + "/" + what.script});
  }
  const std::string program = what.script.empty() ? what.argv.front() : what.script;
  request.argv = std::move(what.argv);
  request.cwd = std::move(what.cwd);
  request.env = std::move(what.env);
  request.with_stdin = !what.input.empty();
  request.hard_timeout_ms = what.limit.count();
  if (!bridge::LauncherClient::fits(session->id, request)) co_return fail(Code::limit, "the command is too large");
  CO_TRY_ASSIGN(bridge::ExecOutcome outcome, co_await launcher.session_exec(std::move(session), std::move(request)));
  if (const auto* refused = std::get_if<bridge::ExecRefused>(&outcome)) {
    if (refused->step == "exec" && refused->error.sys == ENOENT) co_return fail(Code::not_found, program + " is not installed");
    co_return std::unexpected(Error(refused->error).wrap("cannot start " + program));
  }
  auto budget = std::make_shared<OutputBudget>(2 * what.kept_bytes + 2 * OutputBuffer::kChunkBytes);
  Command::Setup setup{"", program, std::move(budget), what.kept_bytes};
  auto command =
      std::make_shared<Command>(launcher.executor(), std::move(setup), std::get<bridge::ExecStarted>(std::move(outcome)));
  Command::run(command);
  if (!what.input.empty()) {
    // A program that has ended already reads nothing; its end says why.
    if (Command::write(command, std::move(what.input), kMostInput)) (void)Command::write(command, "\x04", kMostInput);
  }
  const bridge::Clock::time_point deadline = bridge::Clock::now() + what.limit + kRunGrace;
  while (command->running())
    if (!co_await command->changed.wait_until(deadline)) break;
  command->release();
  if (!command->exec->exit) co_return fail(Code::timeout, program + " did not end");
  OneResult result;
  result.exit = *command->exec->exit;
  result.out = command->out.read(command->out.begin());
  result.err = command->err.read(command->err.begin());
  result.out_cut = command->out.dropped();
  co_return result;
}

}  // namespace

task<OneResult> run_once(bridge::LauncherClient& launcher, OneRun what) {
  CO_TRY_ASSIGN(auto session, co_await launcher.session_create(what.domain, what.label, what.workspace, what.isolated));
  auto result = co_await run_in(launcher, session, std::move(what));
  auto destroyed = co_await launcher.session_destroy(session, "its one command is over");
  if (result && !destroyed && destroyed.error().code != Code::not_found) co_return std::unexpected(std::move(destroyed).error());
  co_return result;
}

task<std::string> ask_system(bridge::LauncherClient& launcher, OneRun what) {
  what.argv.insert(what.argv.begin(), {"/usr/bin/env", "-i", kSystemPath});
  what.cwd = "/";
  what.isolated = true;
  const std::string label = what.label;
  auto ran = co_await run_once(launcher, what);
  if (!ran && ran.error().code == Code::unavailable) {
    what.isolated = false;
    ran = co_await run_once(launcher, std::move(what));
  }
  if (!ran) co_return std::unexpected(std::move(ran).error().wrap(label));
  if (const std::string why = failure_of(ran->exit); !why.empty())
    co_return fail(Code::io, label + ": " + why + (ran->err.empty() ? "" : ": " + quote(ran->err.substr(0, 200))));
  if (ran->out_cut) co_return fail(Code::limit, label + ": it wrote too much");
  co_return std::move(ran->out);
}

task<json::Value> ask_script(bridge::LauncherClient& launcher, OneRun what, json::Value job, std::string body) {
  what.cwd = "/";  // -I keeps modules beside a document out; this keeps it so if that should change
  what.input = json::dump(job) + "\n";
  what.input += body;
  body = std::string();
  const std::string label = what.label;
  const std::size_t most = what.kept_bytes;
  CO_TRY_ASSIGN(const OneResult ran, co_await run_once(launcher, std::move(what)));
  if (const std::string why = failure_of(ran.exit); !why.empty()) {
    const std::size_t from = ran.err.size() - std::min(ran.err.size(), kMostSaid);
    co_return fail(Code::io, label + ": " + why + (ran.err.empty() ? "" : ": " + quote(ran.err.substr(from))));
  }
  if (ran.out_cut) co_return fail(Code::limit, label + ": its answer is longer than " + std::to_string(most) + " bytes");
  const json::Bounds bounds{.max_bytes = most, .max_depth = 64, .max_values = 1024 * 1024};
  auto answer = json::parse(ran.out, bounds);
  if (!answer || !answer->is_object()) co_return fail(Code::io, label + ": it did not answer");
  if (const std::string refused = json::text_of(*answer, "refused"); !refused.empty())
    co_return fail(Code::invalid_argument, refused);
  const auto done = answer->find("done");
  if (done == answer->end()) co_return fail(Code::io, label + ": it did not answer");
  json::Value out = std::move(*done);
  co_return out;
}

std::string failure_of(const bridge::ExecExit& exit) {
  if (exit.reason == "hard_timeout") return "it was killed after its time limit";
  if (exit.reason == "oom") return "it was killed for want of memory";
  if (exit.end.reason == "cpu") return "it was ended when its processor time was over";
  if (!exit.signal.empty()) return "it was ended by " + exit.signal;
  if (exit.exit_code != 0) return "it exited with " + std::to_string(exit.exit_code);
  return exit.reason == "session_end" ? "its session ended" : "";
}

}  // namespace caisson::services
