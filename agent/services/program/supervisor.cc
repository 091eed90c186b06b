#include "agent/services/program/supervisor.h"

#include <algorithm>

#include "agent/metrics/registry.h"

namespace caisson::services {
namespace {

// None after the first failure: most programs fail once, for a reason of their session's.
std::chrono::milliseconds pause_after(unsigned failures, const ProgramLimits& limits) {
  if (failures < 2) return std::chrono::milliseconds(0);
  const unsigned doublings = std::min(failures - 2, 20u);
  return std::min(limits.first_pause * (1u << doublings), limits.longest_pause);
}

task<void> done() { co_return Status{}; }

}  // namespace

// One start at a time, however its coroutine ends.
struct Supervisor::Starting {
  explicit Starting(std::shared_ptr<Shared> owner) : shared(std::move(owner)) { shared->starting = true; }
  ~Starting() {
    shared->starting = false;
    shared->changed.notify_all();
  }
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
  std::shared_ptr<Shared> shared;
};

Supervisor::Supervisor(bridge::LauncherClient& launcher, ProgramSpec spec)
    : shared_(std::make_shared<Shared>(launcher, std::move(spec))), roster_(launcher.executor()) {
  if (shared_->spec.limits.idle.count() == 0) return;
  const std::string what = shared_->spec.name + " expires";
  roster_.look_after(what.c_str(), every(kExpiryPause), [shared = shared_](auto) { return close_if_idle(shared); });
}

Supervisor::~Supervisor() {
  shared_->over = true;
  shared_->changed.notify_all();
}

// --- start ---

bool Supervisor::Shared::refuses() const { return failures >= spec.limits.most_failures && bridge::Clock::now() < next_start; }

task<Program::Pointer> Supervisor::obtain(std::shared_ptr<Shared> shared) {
  std::uint64_t awaited = 0;  // the start whose outcome is this request's too
  while (true) {
    shared->last_used = bridge::Clock::now();
    if (shared->over) co_return fail(Code::io, "the server is stopping");
    if (shared->serves()) co_return shared->current;
    if (shared->starting) {
      awaited = shared->starts;
      (void)co_await shared->changed.wait_until(bridge::no_deadline());
      continue;
    }
    const std::string& name = shared->spec.name;
    const Error ended = shared->last_error.value_or(Error(Code::io, name + " was stopped: " + shared->stop_reason));
    if (awaited == shared->starts && shared->last_error) co_return std::unexpected(ended);
    if (shared->starts > 0 && !shared->spec.limits.restarts) co_return std::unexpected(ended);
    if (shared->refuses())
      co_return fail(Code::unavailable,
                     name + " failed " + std::to_string(shared->failures) + " times in a row; try again later: " + ended.what);
    if (bridge::Clock::now() >= shared->next_start) break;
    (void)co_await shared->changed.wait_until(shared->next_start);
  }
  co_return co_await start(std::move(shared));
}

task<Program::Pointer> Supervisor::start(std::shared_ptr<Shared> shared) {
  const Starting starting(shared);
  const std::uint64_t generation = shared->generation;
  ++shared->starts;
  shared->last_error.reset();
  if (shared->before_start) shared->before_start(shared->spec);
  ProgramSpec spec = shared->spec;
  auto launched = co_await Program::launch(shared->launcher, std::move(spec));
  if (shared->over || generation != shared->generation) {  // a failure of it is no answer to those who wait for the next
    if (launched) (void)co_await Program::close(std::move(*launched), "not needed any more");
    co_return fail(Code::io, shared->spec.name + " was stopped while it started: " + shared->stop_reason);
  }
  if (!launched) {  // no program has run, so none has failed: the next request may try at once
    shared->last_error = launched.error();
    co_return launched;
  }
  const Program::Pointer program = std::move(*launched);
  shared->current = program;
  Status ready = co_await Program::make_ready(program);
  if (generation != shared->generation) {
    (void)co_await Program::close(program, "not needed any more");
    co_return fail(Code::io, shared->spec.name + " was stopped while it started: " + shared->stop_reason);
  }
  if (!ready) {
    shared->current = nullptr;
    shared->count_failure(ready.error());
    co_return std::unexpected(std::move(ready).error());
  }
  shared->ready = true;
  shared->ready_since = bridge::Clock::now();
  metrics::registry().add(metrics::Id::service_starts, {shared->spec.name});
  watch(shared, program);
  co_return program;
}

Program::Pointer Supervisor::adopt(std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started) {
  ++shared_->starts;
  if (shared_->before_start) shared_->before_start(shared_->spec);
  shared_->current = Program::adopt(shared_->launcher, shared_->spec, std::move(session), std::move(started));
  shared_->ready = true;
  shared_->ready_since = shared_->last_used = bridge::Clock::now();
  watch(shared_, shared_->current);
  return shared_->current;
}

// --- end ---

void Supervisor::watch(const std::shared_ptr<Shared>& shared, const Program::Pointer& program) {
  const std::weak_ptr<Shared> weak = shared;
  program->on_end([weak](const Program& ended) {
    const std::shared_ptr<Shared> known = weak.lock();
    if (!known || known->current.get() != &ended) return;
    known->ready = false;
    const auto& exit = ended.exec()->exit;
    const bool blameless = exit && exit->reason == "exit" && exit->exit_code == known->spec.limits.blameless_exit;
    if (!ended.closed() && !blameless) known->count_failure(*ended.end_error());
  });
}

void Supervisor::Shared::count_failure(const Error& why) {
  const bridge::Clock::time_point now = bridge::Clock::now();
  if (current && now - ready_since >= spec.limits.settled_after) failures = 0;
  ++failures;
  next_start = now + pause_after(failures, spec.limits);
  last_error = why;
}

void Supervisor::Shared::let_go(std::string reason) {
  ++generation;
  stop_reason = std::move(reason);
  last_error.reset();
  current = nullptr;
  ready = false;
  try_again();
}

void Supervisor::Shared::try_again() {
  failures = 0;
  next_start = {};
  changed.notify_all();
}

void Supervisor::forget(std::string reason) { shared_->let_go(std::move(reason)); }

task<void> Supervisor::stop(std::string reason) {
  Program::Pointer program = shared_->current;
  shared_->let_go(reason);
  if (!program) return done();
  return Program::close(std::move(program), std::move(reason));
}

task<void> Supervisor::close_if_idle(std::shared_ptr<Shared> shared) {
  if (!shared->serves() || (shared->busy && shared->busy())) co_return Status{};
  if (bridge::Clock::now() - shared->last_used < shared->spec.limits.idle) co_return Status{};
  Program::Pointer program = shared->current;
  shared->let_go("idle");
  co_return co_await Program::close(std::move(program), "idle");
}

Supervisor::Health Supervisor::health() const {
  Health out{.starts = shared_->starts, .failures = shared_->failures, .last_error = shared_->last_error};
  if (shared_->serves()) out.state = State::ready;
  else if (shared_->starting) out.state = State::starting;
  else if (bridge::Clock::now() < shared_->next_start) out.state = State::failing;
  return out;
}

}  // namespace caisson::services
