#include "agent/services/code/code_service.h"

#include <inside_files.h>  // generated

#include "agent/metrics/registry.h"
#include "agent/services/code/code_report.h"
#include "agent/services/common/directory.h"
#include "agent/services/common/text.h"
#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

// The time that an interrupted Python gets to report where it was.
constexpr std::chrono::milliseconds kTracebackGrace{1'000};

InterpreterKind run_kind(Language language, const std::string& path) {
  if (language == Language::python)
    return {{.domain = "code", .label = "run"}, {path, "-c", std::string(inside::kPythonBoot)}, inside::kPythonRun};
  return {{.domain = "nodejs", .label = "run"}, {path, "-e", std::string(inside::kNodeBoot)}, inside::kNodeRun};
}

std::optional<int> said_exit_code(const json::Value& report) {
  const auto code = report.find("exit_code");
  if (code == report.end() || !code->is_number_unsigned() || *code > 255) return std::nullopt;
  return code->get<int>();
}

// Waits until the program has ended or reports that it is done. False: the deadline passed, or the client has left.
asio::awaitable<bool> await_done(SoloSession::CommandPtr command, ReportSearch& report, bridge::Clock::time_point deadline,
                                 std::shared_ptr<const bool> gone) {
  while (true) {
    if (report.found() && said_exit_code(report.value())) co_return true;
    if (co_await await_change(command, deadline, gone)) co_return true;
    if (bridge::Clock::now() >= deadline || (gone && *gone)) co_return false;
  }
}

}  // namespace

CodeService::CodeService(bridge::LauncherClient& launcher, const Config& config)
    : context_(std::make_shared<CodeContext>(launcher, config)),
      toolchains_(launcher),
      pool_(context_),
      python_(context_, Language::python),
      node_(context_, Language::javascript) {}

task<std::shared_ptr<const ToolInventory>> CodeService::inventory() { return toolchains_.get(context_->config.workspace); }

task<json::Value> CodeService::node_packages(std::string node) {
  return toolchains_.node_packages(context_->config.workspace, std::move(node));
}

StatefulCode& CodeService::stateful(Language language) {
  if (language == Language::javascript) return node_;
  return python_;
}

void CodeService::flush() {
  toolchains_.forget();
  pool_.flush();
}

void CodeService::serve_workspace(const std::string& name) {
  toolchains_.forget();
  pool_.forget();
  python_.forget_all();
  node_.forget_all();
  context_->config.workspace = name;
}

task<CodeOutcome> CodeService::run(CodeJob job) {
  metrics::registry().add(metrics::Id::runs, {language_name(job.language), "alone"});
  const std::string& given = context_->config.directory;
  const std::string base = given.empty() ? context_->launcher.greeting().workspace : given;
  const std::string nonce = sys::random_hex(16);
  json::Value frame = {{"nonce", nonce}, {"code", std::move(job.code)}, {"cwd", absolute_dir(base, job.cwd)}};
  if (!job.files.empty()) {
    frame["files"] = std::move(job.files);
    frame["own_directory"] = job.cwd.empty();
  }
  CO_TRY_ASSIGN(const Interpreter one, co_await pool_.take(run_kind(job.language, job.interpreter.path)));
  const SoloSession::CommandPtr command = one.command;
  CO_TRY(Command::write(command, job_frame(frame) + job.input, kMaxJob));
  (void)Command::write(command, "\x04", kMaxJob);  // the end of its input; a quick program may have ended already

  const bridge::Clock::time_point begun = bridge::Clock::now(), deadline = begun + std::chrono::seconds(job.timeout_s);
  // Python reports when it is done, and its exit code: its end would add nothing.
  ReportSearch done(command->err, nonce, 0);
  const bool ended = co_await await_done(command, done, deadline, job.client_gone);
  const auto ran = std::chrono::duration_cast<std::chrono::milliseconds>(bridge::Clock::now() - begun);
  if (!ended) {
    if (job.language == Language::python) {
      (void)co_await context_->launcher.exec_signal(command->exec, "SIGINT");
      (void)co_await await_end(command, bridge::Clock::now() + kTracebackGrace);
    }
    CO_TRY(co_await one.session->end("a run did not end in its time"));
    (void)co_await await_end(command, bridge::Clock::now() + kEndGrace);
  }
  command->take_output();
  StreamText err = text_and_report(command->err, nonce);
  const json::Value report = err.report.value_or(json::Value::object());
  const int exit_code = ended && command->running() ? said_exit_code(done.value()).value_or(1) : exit_code_of(*command, !ended);
  CO_TRY_ASSIGN(CodeOutcome outcome, make_outcome(whole_text(command->out, 0), std::move(err.text), report, exit_code));
  outcome.execution_count = 1;
  outcome.end = ended ? end_of_program(*one.session, *command, exit_code)
                      : bridge::time_end("timeout_ms", job.timeout_s * 1000, ran.count());
  if (!ended) outcome.status = "timeout";
  else if (outcome.exit_code != 0) outcome.hint = co_await why_ended(one.session, command);
  co_return outcome;
}

task<Verdict> CodeService::run_code(RunCodeJob job) {
  CO_TRY_ASSIGN(const auto tools, co_await inventory());
  co_return co_await compile_and_run(context_, pool_, tools, std::move(job));
}

}  // namespace caisson::services
