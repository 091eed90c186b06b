#include "agent/services/notebook/kernel.h"

#include <inside_files.h>  // generated

#include <csignal>
#include <cstring>

#include "agent/metrics/registry.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr double kQuestionSeconds = 60, kStartSeconds = 60;
constexpr double kChdirSeconds = 10, kFilesSeconds = 30, kFetchSeconds = 10;
// The bridge bounds the start of its kernel, and answers then.
constexpr double kStartAnswerSeconds = kStartSeconds + 5;
// After a cell's timeout the bridge interrupts, waits 3 s, and kills. Beyond this grace, the bridge itself does not answer.
constexpr double kGraceSeconds = 8;
constexpr std::size_t kMostCellOutputs = 2000;
constexpr std::size_t kMostKernels = 32;
// A frame's body is one output. Printed text may take six times its bytes in JSON.
constexpr std::size_t kBodyFactor = 6, kBodyRoom = 512 * 1024;

std::vector<KernelSpec> specs_of(const json::Value& head) {
  std::vector<KernelSpec> out;
  const auto list = head.find("kernels");
  if (list == head.end() || !list->is_array()) return out;
  for (const json::Value& kernel : *list) {
    KernelSpec spec{json::text_of(kernel, "name"), json::text_of(kernel, "version"), json::text_of(kernel, "path")};
    if (!spec.name.empty() && spec.path.starts_with('/') && out.size() < kMostKernels) out.push_back(std::move(spec));
  }
  return out;
}

std::vector<std::string> names_of(const json::Value& head, const char* key) {
  std::vector<std::string> out;
  const auto list = head.find(key);
  if (list == head.end() || !list->is_array()) return out;
  for (const json::Value& name : *list)
    if (name.is_string() && out.size() < kMostKernels) out.push_back(name.get<std::string>());
  return out;
}

frames::Limits limits_of(std::size_t most_output_bytes) { return {.body_bytes = most_output_bytes * kBodyFactor + kBodyRoom}; }

int signal_number(const std::string& name) {
  for (int number = 1; number < 32; ++number)
    if (const char* known = ::sigabbrev_np(number); known != nullptr && name == "SIG" + std::string(known)) return number;
  return SIGKILL;
}

void add_hint(std::string& hint, const std::string& more) {
  if (!hint.empty()) hint += "; ";
  hint += more;
}

// A kernel's bridge. It is not started again after its end: its variables are gone, and its notebook session ends with it.
ProgramSpec kernel_bridge(Kernel::Setup setup) {
  ProgramSpec spec{.name = "jupyter worker", .domain = "jupyter"};
  spec.label = std::move(setup.label);
  spec.workspace = std::move(setup.workspace);
  spec.command.argv = {"/usr/bin/python3", "-I", "-c", std::string(inside::kKernelBridge), std::string(inside::kKernelPrelude)};
  spec.isolated = setup.isolated;
  spec.memory_bytes = setup.memory_bytes;
  spec.has_protocol = true;
  spec.limits.restarts = false;
  spec.limits.frames = limits_of(setup.most_output_bytes);
  return spec;
}

}  // namespace

Kernel::Kernel(bridge::LauncherClient& launcher, Setup setup, KernelSpec spec, std::string cwd)
    : spec_(std::move(spec)),
      cwd_(std::move(cwd)),
      most_output_bytes_(setup.most_output_bytes),
      budget_(setup.budget),
      supervisor_(launcher, kernel_bridge(std::move(setup))) {}

task<KernelCatalog> Kernel::ask_catalog(bridge::LauncherClient& launcher, Setup setup) {
  WorkerOptions options;
  options.budget = setup.budget;
  ProgramSpec spec = kernel_bridge(std::move(setup));
  CO_TRY_ASSIGN(const Worker::Pointer worker, co_await Worker::start(launcher, std::move(spec), std::move(options)));
  json::Value head = json::Value::object();
  head["op"] = "kernels";
  auto reply = co_await Worker::call(worker, std::move(head), "", bridge::deadline_after(kQuestionSeconds));
  (void)co_await Worker::close(worker, "asked for kernels");  // only the reply matters; the launcher's log has a failure
  if (!reply) co_return std::unexpected(std::move(reply).error().wrap("ask for the installed kernels"));
  if (const std::string error = json::text_of(reply->head, "error"); !error.empty())
    co_return fail(Code::unavailable, "ask for the installed kernels: " + error);
  KernelCatalog catalog{specs_of(reply->head), names_of(reply->head, "without")};
  co_return catalog;
}

void Kernel::attend(const Pointer& self) {
  const std::weak_ptr<Kernel> weak = self;
  self->supervisor_.spec().opened = [weak](Program::Pointer program) {
    const Pointer kernel = weak.lock();
    if (!kernel) return;
    WorkerOptions options;
    options.budget = kernel->budget_;
    options.mark = kernel->mark_;
    options.on_event = [weak](frames::Frame event) {
      if (const Pointer known = weak.lock()) known->take(event);
    };
    options.on_end = [weak](const Error&) {
      if (const Pointer known = weak.lock()) known->ended();
    };
    kernel->worker_ = Worker::over(std::move(program), std::move(options));
  };
}

task<Kernel::Pointer> Kernel::start(bridge::LauncherClient& launcher, Setup setup, KernelSpec spec, std::string cwd,
                                    std::optional<PackedFiles> files) {
  const bool isolated = setup.isolated, with_files = files.has_value();
  const Pointer self(new Kernel(launcher, std::move(setup), std::move(spec), std::move(cwd)));
  attend(self);
  ProgramSpec& program = self->supervisor_.spec();
  program.keep = !isolated;
  program.command.cwd = with_files ? "/" : self->cwd_;  // cwd is created with the files
  program.limits.ready_within = std::chrono::seconds(static_cast<int>(kFilesSeconds + kStartAnswerSeconds) + 5);
  program.ready.ask = [weak = std::weak_ptr<Kernel>(self),
                       given = std::make_shared<std::optional<PackedFiles>>(std::move(files))](const auto&, auto) {
    return greet(weak.lock(), std::exchange(*given, std::nullopt));
  };
  CO_TRY(co_await self->supervisor_.program());
  co_return self;
}

task<void> Kernel::greet(Pointer self, std::optional<PackedFiles> files) {
  json::Value head = json::Value::object();
  if (files) {
    head = {{"op", "place"}, {"cwd", self->cwd_}, {"files", std::move(files->list)}};
    const auto placed =
        co_await Worker::call(self->worker_, std::move(head), std::move(files->body), bridge::deadline_after(kFilesSeconds));
    std::string error = placed ? json::text_of(placed->head, "error") : placed.error().text();
    if (!error.empty()) co_return fail(Code::invalid_argument, std::move(error));
    head = json::Value::object();
  }
  head["op"] = "start";
  head["name"] = self->spec_.name;
  head["path"] = self->spec_.path;
  head["cwd"] = self->cwd_;
  head["timeout"] = kStartSeconds;
  auto reply = co_await Worker::call(self->worker_, std::move(head), "", bridge::deadline_after(kStartAnswerSeconds));
  std::string what = "start the kernel " + self->spec_.name;
  if (!reply) co_return std::unexpected(std::move(reply).error().wrap(what));
  const std::string error = json::text_of(reply->head, "error");
  if (!error.empty()) co_return std::unexpected(Error(Code::unavailable, error).wrap(what));
  co_return Status{};
}

Kernel::Pointer Kernel::adopt(bridge::LauncherClient& launcher, Setup setup, KernelSpec spec, std::string cwd,
                              std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started) {
  Pointer self(new Kernel(launcher, std::move(setup), std::move(spec), std::move(cwd)));
  // No frame contains these bytes: a frame is a length and JSON, and JSON has no control characters.
  self->mark_ = '\x1e' + sys::random_hex(16) + '\x1e';
  attend(self);
  self->supervisor_.spec().keep = true;
  self->supervisor_.adopt(std::move(session), std::move(started));
  return self;
}

task<void> Kernel::settle(Pointer self, std::chrono::nanoseconds limit) {
  json::Value head = json::Value::object();
  head["op"] = "resume";
  head["mark"] = self->mark_.substr(1, self->mark_.size() - 2);
  const double seconds = std::chrono::duration<double>(limit).count() + kGraceSeconds + kChdirSeconds;
  const auto reply = co_await Worker::call(self->worker_, std::move(head), "", bridge::deadline_after(seconds));
  if (reply && json::text_of(reply->head, "error").empty()) co_return Status{};
  (void)co_await self->supervisor_.stop("agent_restart");  // the first error is the one to report
  self->ended();
  if (!reply) co_return std::unexpected(reply.error());
  co_return fail(Code::unavailable, json::text_of(reply->head, "error"));
}

void Kernel::take(const frames::Frame& event) {
  if (json::text_of(event.head, "event") == "died") {  // between two cells
    ended();
    return;
  }
  const auto cell = json::get_int(event.head, "cell");
  if (!outputs_ || !cell || cell->value_or(0) != cell_) return;  // of a cell that is over
  outputs_->take(event.head, event.body);
}

void Kernel::ended() {
  died_ = true;
  if (const auto told = std::exchange(on_end_, nullptr)) told();
}

task<KernelResult> Kernel::execute(Pointer self, KernelCell cell) {
  metrics::registry().add(metrics::Id::runs, {"python", "cell"});
  self->outputs_.emplace(self->most_output_bytes_, kMostCellOutputs,
                         self->budget_ ? self->budget_->share() : http::Budget::Share());
  json::Value head = json::Value::object();
  head["op"] = "execute";
  head["cell"] = ++self->cell_;
  head["timeout"] = cell.timeout_seconds;
  head["limit"] = self->most_output_bytes_;
  head["most"] = kMostCellOutputs;
  if (!cell.cwd.empty()) head["cwd"] = cell.cwd;
  const double seconds = cell.timeout_seconds + kGraceSeconds + (cell.cwd.empty() ? 0 : kChdirSeconds);
  const auto deadline = bridge::deadline_after(seconds);
  const bridge::Clock::time_point begun = bridge::Clock::now();
  auto reply = co_await Worker::call(self->worker_, std::move(head), std::move(cell.code), deadline);

  KernelResult result{.status = "error", .end = bridge::exit_end(1)};
  const auto ran = std::chrono::duration_cast<std::chrono::milliseconds>(bridge::Clock::now() - begun);
  if (!reply) {
    const bool silent = reply.error().code == Code::timeout;
    if (silent) result.status = "timeout";
    json::Value died = json::Value::object();
    died["why"] = silent ? "it stopped answering" : reply.error().what;
    self->report_death(result, died);
    if (const auto& why = self->worker_->why_ended()) result.end = *why;
    (void)co_await self->supervisor_.stop("the kernel does not answer");  // a failure to end it is in the launcher's log
  } else if (const std::string error = json::text_of(reply->head, "error"); !error.empty()) {
    self->outputs_.reset();
    co_return fail(Code::not_found, error);
  } else {
    const std::string status = json::text_of(reply->head, "status");
    if (status == "ok" || status == "timeout") result.status = status;
    if (status == "ok") result.end = bridge::exit_end(0);
    result.msg_id = json::text_of(reply->head, "msg_id");
    if (const auto count = json::get_int(reply->head, "execution_count")) result.execution_count = *count;
    if (const auto dropped = json::get_int(reply->head, "dropped"); dropped && dropped->value_or(0) > 0)
      self->outputs_->note_dropped(static_cast<std::uint64_t>(**dropped));
    const auto died = reply->head.find("died");
    if (died != reply->head.end() && died->is_object()) self->report_death(result, *died);
    else if (status == "timeout") add_hint(result.hint, "interrupted after " + std::to_string(cell.timeout_seconds) + " s");
  }
  if (self->outputs_->dropped() > 0)
    add_hint(result.hint, "output beyond the limit was dropped: " + std::to_string(self->outputs_->dropped()) + " bytes");
  if (result.status == "timeout") result.end = bridge::time_end("timeout_ms", cell.timeout_seconds * 1000LL, ran.count());
  result.outputs = self->outputs_->release();
  self->outputs_.reset();
  co_return result;
}

task<void> Kernel::enter(Pointer self, std::string cwd) {
  json::Value head = json::Value::object();
  head["op"] = "chdir";
  head["cwd"] = std::move(cwd);
  CO_TRY_ASSIGN(const frames::Frame reply,
                co_await Worker::call(self->worker_, std::move(head), "", bridge::deadline_after(kChdirSeconds + kGraceSeconds)));
  if (std::string error = json::text_of(reply.head, "error"); !error.empty()) co_return fail(Code::not_found, std::move(error));
  co_return Status{};
}

task<std::string> Kernel::fetch(Pointer self, std::string path, std::size_t most) {
  json::Value head = {{"op", "fetch"}, {"cwd", self->cwd_}, {"path", std::move(path)}, {"most", most}};
  CO_TRY_ASSIGN(frames::Frame reply,
                co_await Worker::call(self->worker_, std::move(head), "", bridge::deadline_after(kFetchSeconds)));
  if (!json::flag_of(reply.head, "found") || reply.body.size() > most) co_return fail(Code::not_found, "no such file");
  co_return std::move(reply.body);
}

void Kernel::report_death(KernelResult& result, const json::Value& died) {
  std::string how = json::text_of(died, "why");
  if (const std::string signal = json::text_of(died, "signal"); !signal.empty()) {
    how = "it was ended by " + signal + (result.status == "timeout" ? " because the interrupt had no effect" : "");
    result.exit_code = 128 + signal_number(signal);
    result.end = bridge::end_of(signal == "SIGSYS" ? signal : "signal");
    result.end.signal = signal;
  } else if (const auto code = json::get_int(died, "exit_code"); code && *code) {
    how = "it ended with exit code " + std::to_string(**code);
    result.exit_code = static_cast<int>(**code & 0xFF);
    result.end = bridge::exit_end(*result.exit_code);
  }
  std::vector<std::string> lines{"The kernel died: " + how};
  if (std::string last = json::text_of(died, "stderr"); !last.empty()) lines.push_back(std::move(last));
  outputs_->add_error("DeadKernelError", "the kernel died: " + how, std::move(lines));
  add_hint(result.hint, "the kernel died and its session is gone");
  died_ = true;
}

task<void> Kernel::close(Pointer self, std::string reason) {
  self->on_end_ = nullptr;
  self->died_ = true;
  co_return co_await self->supervisor_.stop(std::move(reason));
}

}  // namespace caisson::services
