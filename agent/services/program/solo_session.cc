#include "agent/services/program/solo_session.h"

#include <csignal>

#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

// How often a waiting request checks whether its client is still there.
constexpr std::chrono::milliseconds kGoneCheck{250};
constexpr std::chrono::milliseconds kEndNews{200};

task<void> destroy(std::shared_ptr<CodeContext> context, std::shared_ptr<bridge::SessionHandle> handle) {
  co_return co_await context->launcher.session_destroy(handle, "its work is over");
}

Error program_refused(const bridge::ExecRefused& refused, const std::string& cwd) {
  if (refused.step == "chdir") return Error(Code::not_found, "cwd cannot be entered: " + cwd);
  return Error(refused.error).wrap("cannot start the program");
}

}  // namespace

SoloSession::SoloSession(std::shared_ptr<CodeContext> context, std::shared_ptr<bridge::SessionHandle> handle)
    : context_(std::move(context)), handle_(std::move(handle)) {}

SoloSession::~SoloSession() {
  context_->quota->give_back();
  handle_->on_end = nullptr;
  for (const CommandPtr& command : commands_) command->release();
  if (!handle_->ended) spawn(context_->launcher.executor(), "end a session", destroy(context_, handle_));
}

task<SoloSession::Pointer> SoloSession::create(std::shared_ptr<CodeContext> context, Setup setup) {
  Quota& quota = *context->quota;
  if (quota.used >= quota.most)
    co_return fail(Code::limit,
                   "all " + std::to_string(quota.most) + " sessions for code of this workspace are in use (MAX_CODE_SESSIONS)");
  ++quota.used;
  auto made = co_await context->launcher.session_create(
      std::move(setup.domain), std::move(setup.label), context->config.workspace, setup.isolated, setup.memory_bytes, setup.keep);
  if (!made) {
    quota.give_back();
    co_return std::unexpected(std::move(made).error());
  }
  const Pointer self(new SoloSession(std::move(context), std::move(*made)));
  self->keep_ = setup.keep;
  co_return self;
}

SoloSession::Pointer SoloSession::restore(std::shared_ptr<CodeContext> context, std::shared_ptr<bridge::SessionHandle> handle,
                                          CommandPtr command) {
  ++context->quota->used;
  Pointer self(new SoloSession(std::move(context), std::move(handle)));
  self->keep_ = true;
  self->commands_.push_back(std::move(command));
  return self;
}

task<SoloSession::CommandPtr> SoloSession::start(bridge::ExecRequest request) {
  const std::shared_ptr<CodeContext> context = context_;
  const std::string cwd = request.cwd;
  request.keep = keep_;
  CO_TRY_ASSIGN(bridge::ExecOutcome outcome, co_await context->launcher.session_exec(handle_, std::move(request)));
  if (const auto* refused = std::get_if<bridge::ExecRefused>(&outcome)) co_return std::unexpected(program_refused(*refused, cwd));
  Command::Setup setup{sys::random_hex(8), "", context->budget, context->config.stream_cap_bytes, {}};
  auto command = std::make_shared<Command>(context->launcher.executor(), std::move(setup),
                                           std::get<bridge::ExecStarted>(std::move(outcome)));
  if (keep_) command->keep(static_cast<std::int64_t>(commands_.size()));
  Command::run(command);
  commands_.push_back(command);
  co_return command;
}

task<void> SoloSession::end(std::string reason) {
  for (const CommandPtr& command : commands_)
    if (command->running()) command->note_kill();
  co_return co_await context_->launcher.session_destroy(handle_, std::move(reason));
}

std::string SoloSession::end_text() const {
  const std::string& reason = handle_->end_reason;
  if (reason == "memory" || reason == "oom") return "the session's memory limit was reached";
  if (reason == "processes") return "the session's limit of processes was reached";
  if (reason == "session_seconds") return "the session's time was over";
  return reason.empty() ? "" : "the session ended: " + reason;
}

asio::awaitable<bool> await_change(SoloSession::CommandPtr command, bridge::Clock::time_point deadline,
                                   std::shared_ptr<const bool> gone) {
  const bridge::Clock::time_point now = bridge::Clock::now();
  if (!command->running() || now >= deadline || (gone && *gone)) co_return !command->running();
  (void)co_await command->changed.wait_until(gone ? std::min(deadline, now + kGoneCheck) : deadline);
  co_return !command->running();
}

asio::awaitable<bool> await_end(SoloSession::CommandPtr command, bridge::Clock::time_point deadline,
                                std::shared_ptr<const bool> gone) {
  while (!co_await await_change(command, deadline, gone))
    if (bridge::Clock::now() >= deadline || (gone && *gone)) co_return false;
  co_return true;
}

asio::awaitable<std::string> why_ended(SoloSession::Pointer session, SoloSession::CommandPtr command) {
  if (!command->exec->exit || command->exec->exit->reason == "exit") co_return "";
  if (!command->hint.empty()) co_return command->hint;
  // The end of the session, if there is one, is reported right after that of its last program.
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kEndNews;
  while (command->exec->exit->reason != "signal" && session->alive() && bridge::Clock::now() < deadline)
    co_await sleep_for(std::chrono::milliseconds(5));
  if (const std::string why = session->end_text(); !why.empty()) co_return why;
  const std::string& signal = command->exec->exit->signal;
  co_return signal.empty() ? "" : "ended by " + signal;
}

bridge::End end_of_program(const SoloSession& session, const Command& command, int exit_code) {
  if (const auto end = command.end(); end && end->reason != "exit") return *end;
  return command.running() && !session.alive() ? session.handle()->end : bridge::exit_end(exit_code);
}

int exit_code_of(const Command& command, bool timed_out) {
  if (timed_out) return 124;
  return command.exit_code.value_or(128 + SIGKILL);
}

task<std::uint64_t> memory_limit(bridge::LauncherClient& launcher, std::string domain, std::int64_t mib) {
  constexpr std::int64_t kMiB = 1024 * 1024;
  if (mib < 1) co_return 0U;
  CO_TRY_ASSIGN(const json::Value answer, co_await launcher.policy(std::move(domain)));
  const json::Value::json_pointer place("/policy/limits/memory_bytes");
  const json::Value most = answer.contains(place) ? answer[place] : json::Value();
  if (!most.is_number_integer()) co_return fail(Code::io, "the launcher's policy has no limit of memory");
  if (mib >= most.get<std::int64_t>() / kMiB) co_return 0U;
  co_return static_cast<std::uint64_t>(mib * kMiB);
}

}  // namespace caisson::services
