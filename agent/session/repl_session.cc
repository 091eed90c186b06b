#include "agent/session/repl_session.h"

#include "agent/session/code_report.h"
#include "agent/session/text.h"
#include "launcher/base/sys.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxJob = 32 * 1024 * 1024;
// After an interrupt, and for the program's own timer before one.
constexpr std::chrono::milliseconds kReplGrace{2000};

std::string text_between(const OutputBuffer& buffer, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t start = std::max(from, buffer.begin());
  std::string out;
  if (start > from) out = "[... " + std::to_string(start - from) + " bytes of output dropped ...]\n";
  if (to > start) out += to_utf8(buffer.read(start, static_cast<std::size_t>(to - start)));
  return out;
}

json::Value job_json(const CodeJob& job, const std::string& nonce) {
  json::Value out = {{"nonce", nonce}, {"code", job.code}, {"timeout_ms", job.timeout_s * 1000}};
  if (!job.cwd.empty()) out["cwd"] = job.cwd;
  if (!job.files.empty()) out["files"] = job.files;
  if (!job.input.empty()) out["input"] = job.input;
  return out;
}

asio::awaitable<bool> await_marks(ReplSession& self, ReportSearch& out, ReportSearch& err, bridge::Clock::time_point deadline) {
  while (!out.found() || !err.found()) {
    if (!self.interpreter.command->running() || bridge::Clock::now() >= deadline) co_return false;
    (void)co_await self.interpreter.command->changed.wait_until(deadline);
  }
  co_return true;
}

}  // namespace

void ReplSession::touch() {
  last_used = bridge::Clock::now();
  last_used_ms = sys::realtime_ns() / 1'000'000;
}

task<CodeOutcome> ReplSession::run(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher, CodeJob job) {
  self->touch();
  const SoloSession::CommandPtr command = self->interpreter.command;
  const std::string nonce = sys::random_hex(16);
  ReportSearch out(command->out, nonce, self->out_next_), err(command->err, nonce, self->err_next_);
  CO_TRY(BashCommand::write(command, job_frame(job_json(job, nonce)), kMaxJob));
  bridge::Clock::time_point deadline = bridge::Clock::now() + std::chrono::seconds(job.timeout_s);
  if (self->language == Language::javascript) deadline += kReplGrace;  // it watches its time itself, and says so
  bool done = co_await await_marks(*self, out, err, deadline);
  bool timed_out = false;
  if (!done && command->running()) {
    timed_out = true;
    if (self->language == Language::python) {
      (void)co_await launcher.exec_signal(command->exec, "SIGINT");
      done = co_await await_marks(*self, out, err, bridge::Clock::now() + kReplGrace);
    }
  }
  if (!done) {
    self->closed = true;
    (void)co_await self->interpreter.session->end("a job did not end in its time");
    (void)co_await await_end(command, bridge::Clock::now() + kReplGrace);
  }
  const json::Value report = err.value();
  timed_out = timed_out || report.value("timeout", json::Value()) == json::Value(true);
  const auto code = report.find("exit_code");
  const int said = code != report.end() && code->is_number_integer() ? code->get<int>() : 0;
  const int exit_code = timed_out ? 124 : done ? said : exit_code_of(*command, false);
  CO_TRY_ASSIGN(CodeOutcome outcome, make_outcome(text_between(command->out, self->out_next_, out.begin()),
                                                  text_between(command->err, self->err_next_, err.begin()), report, exit_code));
  self->out_next_ = out.end();
  self->err_next_ = err.end();
  outcome.session_id = self->id;
  if (timed_out) outcome.status = "timeout";
  if (const auto count = report.find("count"); count != report.end() && count->is_number_integer())
    outcome.execution_count = count->get<std::int64_t>();
  if (!done) {
    outcome.hint = "the session is gone, and its variables with it";
    if (const std::string why = self->interpreter.session->end_text(); !why.empty()) outcome.hint = why + ": " + outcome.hint;
  }
  self->touch();
  co_return outcome;
}

}  // namespace caisson::session
