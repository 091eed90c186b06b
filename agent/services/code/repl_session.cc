#include "agent/services/code/repl_session.h"

#include <algorithm>

#include "agent/services/code/code_report.h"
#include "agent/services/common/text.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

// Time for an interrupt to work, and for the program's own timer before it.
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

}  // namespace

// The end of one job, in both streams.
struct ReplSession::Marks {
  Marks(const ReplSession& self, const std::string& nonce)
      : command(self.interpreter.command), out(command->out, nonce, self.out_next_), err(command->err, nonce, self.err_next_) {}
  asio::awaitable<bool> come(bridge::Clock::time_point deadline) {
    while (!out.found() || !err.found()) {
      if (!command->running() || bridge::Clock::now() >= deadline) co_return false;
      (void)co_await command->changed.wait_until(deadline);
    }
    co_return true;
  }

  const SoloSession::CommandPtr command;
  ReportSearch out, err;
};

void ReplSession::touch() {
  last_used = bridge::Clock::now();
  last_used_ms = sys::realtime_ns() / 1'000'000;
}

asio::awaitable<bool> ReplSession::await_job(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher, Marks& marks,
                                             bridge::Clock::time_point deadline, bool& timed_out) {
  if (self->language == Language::javascript) deadline += kReplGrace;  // it keeps its time itself, and reports it
  bool done = co_await marks.come(deadline);
  if (!done && marks.command->running()) {
    timed_out = true;
    if (self->language == Language::python) {
      (void)co_await launcher.exec_signal(marks.command->exec, "SIGINT");
      done = co_await marks.come(bridge::Clock::now() + kReplGrace);
    }
  }
  if (done) co_return true;
  self->closed = true;
  (void)co_await self->interpreter.session->end("a job did not end in its time");
  (void)co_await await_end(marks.command, bridge::Clock::now() + kReplGrace);
  co_return false;
}

task<CodeOutcome> ReplSession::run(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher, CodeJob job) {
  self->touch();
  const SoloSession::CommandPtr command = self->interpreter.command;
  const std::string nonce = sys::random_hex(16);
  Marks marks(*self, nonce);
  const ReportSearch &out = marks.out, &err = marks.err;
  self->until_ns_ = sys::realtime_ns() + job.timeout_s * 1'000'000'000LL;
  self->save();
  if (Status written = Command::write(command, job_frame(job_json(job, nonce)), kMaxJob); !written) {
    self->until_ns_ = 0;
    self->save();
    co_return std::unexpected(std::move(written).error());
  }
  const bridge::Clock::time_point begun = bridge::Clock::now();
  bool timed_out = false;
  const bool done = co_await await_job(self, launcher, marks, begun + std::chrono::seconds(job.timeout_s), timed_out);
  const json::Value report = err.value();
  timed_out = timed_out || report.value("timeout", json::Value()) == json::Value(true);
  const auto code = report.find("exit_code");
  const int said = code != report.end() && code->is_number_integer() ? code->get<int>() : 0;
  const int exit_code = timed_out ? 124 : done ? said : exit_code_of(*command, false);
  CO_TRY_ASSIGN(CodeOutcome outcome, make_outcome(text_between(command->out, self->out_next_, out.begin()),
                                                  text_between(command->err, self->err_next_, err.begin()), report, exit_code));
  self->out_next_ = out.end();
  self->err_next_ = err.end();
  self->until_ns_ = 0;
  self->save();
  outcome.session_id = self->id;
  const auto ran = std::chrono::duration_cast<std::chrono::milliseconds>(bridge::Clock::now() - begun);
  if (timed_out) outcome.end = bridge::time_end("timeout_ms", job.timeout_s * 1000, ran.count());
  else outcome.end = done ? bridge::exit_end(exit_code) : end_of_program(*self->interpreter.session, *command, exit_code);
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

// --- what outlives the agent ---

void ReplSession::keep() {
  record_ = Keep::make("repl", {{"session", interpreter.session->handle()->id}});
  save();
}

void ReplSession::save() {
  if (record_.keep() == nullptr) return;
  const json::Value body{{"session", interpreter.session->handle()->id},
                         {"id", id},
                         {"language", language == Language::python ? "python" : "javascript"},
                         {"version", version.version},
                         {"path", version.path},
                         {"cwd", cwd},
                         {"created_ms", created_ms},
                         {"max_idle_s", max_idle_s},
                         {"until_ns", until_ns_}};
  (void)record_.write(body, {out_next_, err_next_});  // without room the older one stays
}

std::shared_ptr<ReplSession> ReplSession::restore(const std::shared_ptr<CodeContext>& context, Language language,
                                                  const std::shared_ptr<bridge::SessionHandle>& handle, Keep::Left session,
                                                  Keep::Left command) {
  const json::Value& body = session.body;
  const asio::any_io_executor& executor = context->launcher.executor();
  auto self = std::make_shared<ReplSession>(executor, json::text_of(body, "id"), language);
  self->version = {json::text_of(body, "version"), json::text_of(body, "path")};
  self->cwd = json::text_of(body, "cwd");
  self->touch();
  self->created_ms = json::number_of(body, "created_ms").value_or(self->last_used_ms);
  self->max_idle_s = std::max<std::int64_t>(json::number_of(body, "max_idle_s").value_or(self->max_idle_s), 0);
  self->until_ns_ = json::number_of(body, "until_ns").value_or(0);
  self->out_next_ = session.ends.first;
  self->err_next_ = session.ends.second;
  Command::Setup setup{json::text_of(command.body, "id"), "", context->budget, context->config.stream_cap_bytes, {}};
  self->interpreter.command = std::make_shared<Command>(executor, std::move(setup), command);
  self->interpreter.command->exec->session = handle->id;
  self->interpreter.session = SoloSession::restore(context, handle, self->interpreter.command);
  self->record_ = std::move(session.record);
  return self;
}

// A program takes its jobs in turn, so the mark of an empty job follows everything that came before it.
task<void> ReplSession::settle(std::shared_ptr<ReplSession> self, bridge::LauncherClient& launcher) {
  if (self->until_ns_ == 0) co_return Status{};
  const std::chrono::nanoseconds left = time_left(self->until_ns_);
  const std::string nonce = sys::random_hex(16);
  Marks marks(*self, nonce);
  CO_TRY(Command::write(marks.command, job_frame(job_json({.language = self->language, .timeout_s = 1}, nonce)), kMaxJob));
  bool timed_out = false;
  if (!co_await await_job(self, launcher, marks, bridge::Clock::now() + left + kReplGrace, timed_out)) co_return Status{};
  self->out_next_ = marks.out.end();
  self->err_next_ = marks.err.end();
  self->until_ns_ = 0;
  self->save();
  co_return Status{};
}

}  // namespace caisson::services
