#include "agent/services/code/repl_service.h"

#include <inside_files.h>  // generated

#include <algorithm>

#include "agent/metrics/registry.h"
#include "agent/services/common/counted.h"
#include "agent/services/common/directory.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

InterpreterKind repl_kind(Language language, const std::string& path, std::string label) {
  const bool python = language == Language::python;
  // Python runs in the notebooks' domain: the domain `code` is for short runs.
  SoloSession::Setup setup{.domain = python ? "jupyter" : "nodejs", .label = std::move(label)};
  if (python) return {std::move(setup), {path, "-c", std::string(inside::kPythonBoot)}, inside::kPythonRepl};
  return {std::move(setup), {path, "-e", std::string(inside::kNodeBoot)}, inside::kNodeRepl};
}

}  // namespace

ReplService::ReplService(std::shared_ptr<CodeContext> context, Language language)
    : context_(std::move(context)), language_(language), roster_(context_->launcher.executor()) {}

ReplService::~ReplService() { roster_.stop(); }

void ReplService::sweep() {
  for (const SessionPtr& session : table_.all())
    if (!session->alive() && !session->busy()) table_.erase(session->id);
}

void ReplService::forget_all() {
  for (const SessionPtr& session : table_.all()) {
    session->closed = true;
    table_.erase(session->id);
  }
}

ReplService::SessionPtr ReplService::find(const std::string& session_id) {
  SessionPtr session = table_.find(session_id);
  if (session && !session->alive()) {
    table_.erase(session_id);
    return nullptr;
  }
  return session;
}

std::vector<ReplService::SessionPtr> ReplService::sessions() {
  sweep();
  return table_.all();
}

task<void> ReplService::make_room() {
  sweep();
  while (context_->quota->used >= context_->quota->most) {
    const SessionPtr victim = table_.least_recent(false);
    if (!victim) co_return Status{};  // the caller reports it
    CO_TRY(co_await close(victim, "evicted"));
  }
  co_return Status{};
}

task<ReplService::Created> ReplService::create(CreateParams params) {
  CO_TRY(check_session_id("session_id", params.session_id));
  look_after_idle();
  const std::string id = params.session_id.empty() ? sys::random_hex(16) : params.session_id;
  Created known{find(id), false};
  if (known.session) co_return known;
  CO_TRY(co_await make_room());
  const std::string& given = context_->config.directory;
  const std::string base = given.empty() ? context_->launcher.greeting().workspace : given;
  auto session = std::make_shared<ReplSession>(context_->launcher.executor(), id, language_);
  session->version = std::move(params.interpreter);
  session->cwd = absolute_dir(base, params.cwd);
  session->max_idle_s = params.max_idle_s;
  InterpreterKind kind = repl_kind(language_, session->version.path, id);
  kind.setup.keep = true;
  CO_TRY_ASSIGN(session->interpreter, co_await start_interpreter(context_, std::move(kind), session->cwd));
  session->touch();
  session->created_ms = session->last_used_ms;
  known.session = find(id);  // two requests with one id at the same time
  if (known.session) co_return known;
  table_.insert(session);
  session->keep();
  roster_.wake();  // it may be the next session to expire
  Created made{session, true};
  co_return made;
}

task<CodeOutcome> ReplService::run(SessionPtr session, CodeJob job) {
  const Counted<int> waiting(session->waiting);
  const http::AsyncLock::Held turn = co_await session->turn.acquire();
  if (!session->alive()) co_return fail(Code::not_found, "the session ended before this request had its turn");
  if (!job.cwd.empty()) job.cwd = absolute_dir(session->cwd, job.cwd);
  const std::string cwd = job.cwd;
  auto outcome = co_await ReplSession::run(session, context_->launcher, std::move(job));
  if (outcome && !cwd.empty()) {
    session->cwd = cwd;
    session->save();
  }
  if (session->closed && table_.find(session->id) == session) table_.erase(session->id);
  co_return outcome;
}

task<CodeOutcome> ReplService::execute(std::string session_id, CodeJob job) {
  metrics::registry().add(metrics::Id::runs, {language_name(language_), "repl"});
  CreateParams params{.session_id = session_id, .cwd = job.cwd, .interpreter = job.interpreter};
  CO_TRY_ASSIGN(Created created, co_await create(std::move(params)));
  CO_TRY_ASSIGN(CodeOutcome outcome, co_await run(created.session, std::move(job)));
  if (created.is_new && !session_id.empty() && outcome.hint.empty()) outcome.hint = "a new session was made: " + session_id;
  co_return outcome;
}

task<void> ReplService::move(SessionPtr session, std::string cwd) {
  CodeJob job{.language = language_, .code = "", .cwd = std::move(cwd)};
  CO_TRY(co_await run(session, std::move(job)));
  co_return Status{};
}

task<void> ReplService::close(SessionPtr session, std::string reason) {
  session->closed = true;
  if (table_.find(session->id) == session) table_.erase(session->id);
  co_return co_await session->interpreter.session->end(std::move(reason));
}

bool ReplService::restore(const std::shared_ptr<bridge::SessionHandle>& handle, Keep::Left session, Keep::Left command) {
  if (const std::string id = json::text_of(session.body, "id"); !valid_session_id(id) || table_.find(id)) return false;
  table_.insert(ReplSession::restore(context_, language_, handle, std::move(session), std::move(command)));
  look_after_idle();
  return true;
}

task<void> ReplService::attach(const bridge::LeftSession& left) {
  SessionPtr session;
  for (const SessionPtr& one : table_.all())
    if (one->interpreter.session->handle() == left.handle) session = one;
  if (!session) co_return Status{};
  CO_TRY(co_await Command::take_up(context_->launcher, left, session->interpreter.command));
  auto busy = std::make_shared<Counted<int>>(session->waiting);
  spawn(context_->launcher.executor(), "a REPL goes on", settle(this, roster_.life(), session, std::move(busy)));
  co_return Status{};
}

task<void> ReplService::settle(ReplService* self, std::shared_ptr<const Life> life, SessionPtr session,
                               std::shared_ptr<Counted<int>> busy) {
  const http::AsyncLock::Held turn = co_await session->turn.acquire();
  Status done = co_await ReplSession::settle(session, self->context_->launcher);
  busy.reset();
  if (!life->over && session->closed && self->table_.find(session->id) == session) self->table_.erase(session->id);
  co_return done;
}

bridge::Clock::time_point ReplService::next_check() const {
  bridge::Clock::time_point next = bridge::Clock::now() + kExpiryPause;
  for (const SessionPtr& session : table_.all())
    if (!session->busy()) next = std::min(next, session->idle_until());
  return next;
}

void ReplService::look_after_idle() {
  if (std::exchange(expiring_, true)) return;
  roster_.look_after(
      "REPLs expire", [this] { return next_check(); },
      [this](auto life) {
        sweep();
        std::vector<SessionPtr> idle = table_.all();
        std::erase_if(idle, [now = bridge::Clock::now()](const SessionPtr& s) { return s->busy() || now < s->idle_until(); });
        return close_idle(this, std::move(life), std::move(idle));
      });
}

}  // namespace caisson::services
