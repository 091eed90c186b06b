#include "agent/services/notebook/jupyter_service.h"

#include <algorithm>

#include "agent/http/log.h"
#include "agent/services/common/directory.h"
#include "agent/services/program/toolchains.h"
#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

constexpr std::chrono::minutes kNotebookWait{10};  // how long a notebook waits for its turn
constexpr std::string_view kAlias = "python3";
constexpr std::size_t kMostQueuedCells = 32;  // cells of one session, the running one included

std::string list_of(const std::vector<KernelSpec>& kernels) {
  std::string out;
  for (const KernelSpec& kernel : kernels) out.append(out.empty() ? "" : ", ").append(kernel.name);
  return out;
}

}  // namespace

void JupyterSession::touch() {
  last_used = bridge::Clock::now();
  last_used_ns = sys::realtime_ns();
}

JupyterService::JupyterService(bridge::LauncherClient& launcher, Config config)
    : launcher_(launcher),
      config_(std::move(config)),
      pool_(launcher),
      asking_(launcher.executor()),
      alone_(launcher.executor(), config_.max_jupyter_sessions),
      roster_(launcher.executor()) {
  if (const std::chrono::seconds idle = config_.jupyter_idle; idle.count() != 0)
    roster_.look_after("jupyter sessions expire", every(kExpiryPause), [this, idle](auto life) {
      const bridge::Clock::time_point before = bridge::Clock::now() - idle;
      pool_.expire(before);
      return close_idle(this, std::move(life), table_.idle_since(before));
    });
}

JupyterService::~JupyterService() {
  roster_.stop();
  for (const SessionPtr& session : table_.all())
    if (session->kernel) session->kernel->on_end(nullptr);
}

void JupyterService::serve_workspace(std::string name, std::string home) {
  config_.directory = std::move(home);
  lost_.clear();
  flush();
  config_.workspace = std::move(name);
}

void JupyterService::flush() {
  ++generation_;
  catalog_.reset();
  pool_.clear();
}

const std::string& JupyterService::workspace() {
  if (config_.directory.empty()) config_.directory = launcher_.greeting().workspace;
  return config_.directory;
}

Kernel::Setup JupyterService::setup_of(std::string label) const {
  return {.workspace = config_.workspace,
          .label = std::move(label),
          .most_output_bytes = config_.stream_cap_bytes,
          .budget = config_.budget};
}

// --- which kernels there are ---

task<KernelCatalog> JupyterService::catalog() {
  Turns::Place place(asking_);
  while (!place.first()) (void)co_await place.changed();
  if (!catalog_) {
    const std::uint64_t generation = generation_;
    CO_TRY_ASSIGN(KernelCatalog found, co_await Kernel::ask_catalog(launcher_, setup_of("kernels")));
    if (found.kernels.empty())
      co_return fail(Code::unavailable,
                     "no Python with ipykernel is installed (Debian: python3-ipykernel, python3-jupyter-client)");
    if (generation != generation_) co_return found;
    catalog_ = std::move(found);
    keep_ready(*catalog_);
  }
  co_return *catalog_;
}

std::string JupyterService::default_name(const KernelCatalog& catalog) const {
  const auto named = std::ranges::find(catalog.kernels, config_.python_version, &KernelSpec::name);
  return named != catalog.kernels.end() ? named->name : std::string(kAlias);
}

Result<KernelSpec> JupyterService::resolve(const KernelCatalog& known, std::string name) const {
  if (name.empty() || name == kAlias) name = default_name(known);
  if (name == kAlias) return known.kernels.front();
  const auto found = std::ranges::find(known.kernels, name, &KernelSpec::name);
  if (found != known.kernels.end()) return *found;
  std::string message = "kernel " + quote(name) + " is not installed; available: " + std::string(kAlias);
  message.append(", ").append(list_of(known.kernels));
  if (std::ranges::find(known.without, name) != known.without.end()) message += " (that Python is there, without ipykernel)";
  return fail(Code::not_found, std::move(message));
}

std::optional<std::string> JupyterService::hint_for(const std::string& kernel_name) const {
  if (!catalog_ || !kernel_name.starts_with("python") || resolve(*catalog_, kernel_name)) return std::nullopt;
  return std::string(kMorePythons);
}

void JupyterService::keep_ready(const KernelCatalog& catalog) {
  const std::string name = default_name(catalog);
  const auto spec = std::ranges::find(catalog.kernels, name, &KernelSpec::name);
  KernelPool::Wanted wanted{.setup = setup_of("prepared"),
                            .spec = spec == catalog.kernels.end() ? catalog.kernels.front() : *spec,
                            .cwd = workspace(),
                            .size = config_.prepared_kernels};
  pool_.want(std::move(wanted));
}

task<void> JupyterService::prepare() {
  if (auto found = co_await catalog(); !found) log::warn("no kernel is ready: " + found.error().text());
  co_return Status{};
}

// --- sessions ---

void JupyterService::forget(const SessionPtr& session, std::string why) {
  if (session->closed) return;
  session->closed = true;
  session->why_closed = std::move(why);
  if (table_.find(session->id) == session) table_.erase(session->id);
  session->turns.wake();
}

void JupyterService::forget_at_end(const SessionPtr& session) {
  const std::weak_ptr<JupyterSession> weak = session;
  session->kernel->on_end([this, weak] {
    if (const SessionPtr ended = weak.lock()) forget(ended, "its kernel died");
  });
  if (!session->kernel->alive()) forget(session, "its kernel died");
}

// The session is in the table before its kernel runs, so requests that name it meanwhile queue behind the first.
task<JupyterService::SessionPtr> JupyterService::obtain(Target target) {
  CO_TRY(check_session_id("session_id", target.session_id));
  if (target.cwd.contains('\0')) co_return fail(Code::invalid_argument, "cwd contains a NUL byte");
  CO_TRY_ASSIGN(const KernelCatalog kernels, co_await catalog());
  CO_TRY_ASSIGN(const KernelSpec spec, resolve(kernels, target.kernel_name));
  const bool implicit = target.session_id.empty();
  if (implicit || !table_.find(target.session_id))
    CO_TRY(co_await make_room(this, &table_,
                              {.most = config_.max_jupyter_sessions,
                               .full = "jupyter sessions are running a cell; delete one first",
                               .most_implicit = implicit ? config_.max_implicit_kernels : 0}));
  if (const SessionPtr known = implicit ? nullptr : table_.find(target.session_id)) {
    if (!target.kernel_name.empty() && known->kernel_path != spec.path)
      co_return fail(Code::already_exists, "session " + quote(known->id) + " runs the kernel " + known->kernel_name +
                                               "; delete it, or name another session for " + quote(target.kernel_name));
    known->implicit = false;  // a client has come back to it
    known->touch();
    known->save();
    co_return known;
  }
  auto session = std::make_shared<JupyterSession>(launcher_.executor());
  session->id = implicit ? sys::random_hex(16) : target.session_id;
  session->kernel_name = target.kernel_name.empty() ? default_name(kernels) : target.kernel_name;
  session->kernel_path = spec.path;
  session->cwd = absolute_dir(workspace(), target.cwd);
  session->implicit = implicit;
  session->touch();
  session->created_ns = session->last_used_ns;
  table_.insert(session);
  co_return session;
}

task<void> JupyterService::await_turn(SessionPtr session, Turns::Place& place) {
  while (!session->closed && !place.first()) (void)co_await place.changed();
  if (session->closed) co_return fail(Code::not_found, "the session ended before this cell's turn: " + session->why_closed);
  co_return Status{};
}

task<void> JupyterService::ensure_kernel(SessionPtr session) {
  if (session->kernel) co_return Status{};
  const auto known = co_await catalog();
  if (!known) {
    forget(session, known.error().text());
    co_return std::unexpected(known.error());
  }
  const auto spec = std::ranges::find(known->kernels, session->kernel_path, &KernelSpec::path);
  if (spec == known->kernels.end()) {
    forget(session, "its kernel is not installed any more");
    co_return fail(Code::not_found, "the session's kernel is not installed any more");
  }
  keep_ready(*known);
  const bool is_default = pool_.keeps(session->kernel_path);
  auto kernel =
      is_default ? co_await pool_.take() : co_await Kernel::start(launcher_, setup_of(session->id), *spec, session->cwd);
  if (kernel && session->cwd != (*kernel)->cwd()) {
    auto entered = co_await Kernel::enter(*kernel, session->cwd);
    if (!entered) {
      (void)co_await Kernel::close(*kernel, "cwd cannot be entered");  // the first error is the one to report
      kernel = std::unexpected(std::move(entered).error());
    }
  }
  if (!kernel) {
    forget(session, kernel.error().text());
    co_return std::unexpected(std::move(kernel).error());
  }
  if (session->closed) {  // deleted while its kernel was being started
    (void)co_await Kernel::close(*kernel, "its session was deleted");
    co_return fail(Code::not_found, "the session was deleted meanwhile");
  }
  session->kernel = std::move(*kernel);
  Program& program = session->kernel->program();
  program.keep_in(Keep::make("kernel", {{"session", program.session()->id}}));
  session->save();
  forget_at_end(session);
  co_return Status{};
}

task<JupyterService::SessionPtr> JupyterService::create(Target target) {
  CO_TRY_ASSIGN(const SessionPtr session, co_await obtain(std::move(target)));
  if (session->turns.size() > 0) co_return session;  // its kernel is at work
  Turns::Place turn(session->turns);
  CO_TRY(co_await await_turn(session, turn));
  CO_TRY(co_await ensure_kernel(session));
  session->implicit = false;  // a session made by `create` is meant to be kept
  session->touch();
  session->save();
  co_return session;
}

task<JupyterService::Answer> JupyterService::execute(Request request) {
  const std::string cwd = request.target.cwd;
  CO_TRY_ASSIGN(const SessionPtr session, co_await obtain(std::move(request.target)));
  if (session->turns.size() >= kMostQueuedCells)
    co_return fail(Code::limit, std::to_string(kMostQueuedCells) + " cells of this session wait already");
  Turns::Place turn(session->turns);
  CO_TRY(co_await await_turn(session, turn));
  if (request.gone && request.gone()) co_return fail(Code::io, "the client has left");
  const bool is_new = !session->kernel;  // a new one starts in cwd
  CO_TRY(co_await ensure_kernel(session));
  const Kernel::Pointer kernel = session->kernel;
  KernelCell cell{.code = std::move(request.code), .timeout_seconds = request.timeout_seconds};
  if (!cwd.empty() && !is_new) cell.cwd = absolute_dir(workspace(), cwd);
  Answer answer{.session_id = session->id, .kernel_name = session->kernel_name};
  session->until_ns = sys::realtime_ns() + request.timeout_seconds * 1'000'000'000LL;
  session->save();
  auto result = co_await Kernel::execute(kernel, std::move(cell));
  session->until_ns = 0;
  session->touch();
  session->save();
  if (!kernel->alive()) forget(session, "its kernel died");
  if (!result) co_return std::unexpected(std::move(result).error());
  answer.result = std::move(*result);
  if (is_new && lost_.erase(session->id) > 0)
    answer.result.hint = "the kernel of this id was lost with the agent, and its variables with it: this is a new one";
  co_return answer;
}

task<JupyterService::Alone> JupyterService::start_alone(std::string cwd, PackedFiles files, std::uint64_t memory_bytes,
                                                        std::shared_ptr<const bool> gone) {
  const std::function<bool()> enough = [&gone, until = bridge::Clock::now() + kNotebookWait] {
    return (gone && *gone) || bridge::Clock::now() > until;
  };
  co_await alone_.room(enough);
  if (alone_.used >= alone_.most)
    co_return fail(Code::limit, std::to_string(alone_.most) + " notebooks run already (MAX_JUPYTER_SESSIONS)");
  ++alone_.used;
  Alone out;
  out.slot = std::shared_ptr<void>(nullptr, [quota = &alone_](void*) { quota->give_back(); });
  if (gone && *gone) co_return fail(Code::unavailable, "the client has gone");
  CO_TRY_ASSIGN(const KernelCatalog known, co_await catalog());
  CO_TRY_ASSIGN(KernelSpec spec, resolve(known, ""));
  Kernel::Setup setup = setup_of("run_jupyter");
  setup.isolated = true;
  setup.memory_bytes = memory_bytes;
  std::optional<PackedFiles> with(std::move(files));
  CO_TRY_ASSIGN(out.kernel,
                co_await Kernel::start(launcher_, std::move(setup), std::move(spec), std::move(cwd), std::move(with)));
  co_return out;
}

task<void> JupyterService::close(SessionPtr session, std::string reason) {
  forget(session, reason);
  if (!session->kernel) co_return Status{};
  co_return co_await Kernel::close(session->kernel, std::move(reason));
}

}  // namespace caisson::services
