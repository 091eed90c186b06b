#include "agent/services/workspace/workspaces.h"

#include <algorithm>

namespace caisson::services {
namespace {

constexpr std::string_view kDefault = "default";
// The name in a slot whose workspace has ended. No workspace can have this name, so a request that is still under way creates
// nothing.
constexpr const char* kNone = "(ended)";
// Every workspace has a budget of its own for output, so that one cannot push out another's; a named one gets a part of the room.
constexpr std::size_t kShare = 4;
constexpr std::chrono::seconds kLastWords{3}, kResetWait{60};

Config named_config(Config config, std::string home) {
  config.directory = std::move(home);  // WORKSPACE is a folder of the default one
  config.total_cap_bytes = std::max(config.total_cap_bytes / kShare, std::min(config.total_cap_bytes, std::size_t{1} << 20));
  config.warm_sessions = std::min<std::size_t>(config.warm_sessions, 1);
  config.stream_cap_bytes = std::min(config.stream_cap_bytes, config.total_cap_bytes);
  return config;
}

// The room that each workspace keeps when the others are full of texts and input, which cannot be dropped.
constexpr std::size_t kLeast = 256 * 1024;

Config with_budget(Config config, const std::shared_ptr<http::Budget>& kept) {
  config.budget = std::make_shared<OutputBudget>(config.total_cap_bytes, kept);
  return config;
}

}  // namespace

Workspaces::Workspaces(bridge::LauncherClient& launcher, Config config)
    : launcher_(launcher),
      kept_(std::make_shared<http::Budget>(config.total_cap_bytes, kLeast)),
      config_(std::move(config)),
      standard_(std::make_shared<Workspace>(launcher, with_budget(config_, kept_))),
      settled_(launcher.executor()) {
  launcher_.on_workspace_end([this](const std::string& name) { ended(name); });
  launcher_.on_policy_reload([this] { policies_changed(); });
  launcher_.on_session_end([this](const bridge::SessionHandle& session) {
    for (const WorkspacePtr& workspace : known())
      if (workspace->name == session.workspace) workspace->observer.session_ended(session);
  });
}

Workspaces::~Workspaces() {
  launcher_.on_workspace_end(nullptr);
  launcher_.on_policy_reload(nullptr);
  launcher_.on_session_end(nullptr);
}

std::vector<WorkspacePtr> Workspaces::known() const {
  std::vector<WorkspacePtr> out{standard_};
  for (const auto& [name, workspace] : named_) out.push_back(workspace);
  return out;
}

namespace {

// The launcher's description says whether it is paused. A workspace that is being paused cannot serve requests either.
bool is_paused(const json::Value& workspace) {
  const std::string state = workspace.value("state", "");
  return state == "paused" || state == "pausing";
}

struct Ending {
  explicit Ending(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::size_t running = 0;
  bridge::Notifier changed;
};

task<void> end_one(Workspaces& workspaces, WorkspacePtr workspace, bridge::Clock::time_point deadline,
                   std::shared_ptr<Ending> all) {
  if (!workspace->hooks.list(Hooks::kShutdown).empty()) (void)co_await workspaces.wake(workspace);  // if not, its hooks say so
  Status done = co_await workspace->hooks.run(std::string(Hooks::kShutdown), deadline);
  --all->running;
  all->changed.notify_all();
  if (!done) co_return std::unexpected(std::move(done).error().wrap("workspace " + workspace->name));
  co_return done;
}

}  // namespace

asio::awaitable<void> Workspaces::shut_down(bridge::Clock::time_point deadline) {
  auto all = std::make_shared<Ending>(launcher_.executor());
  for (const WorkspacePtr& workspace : known()) {
    ++all->running;
    spawn(launcher_.executor(), "shutdown hooks", end_one(*this, workspace, deadline, all));
  }
  // Hooks killed at the deadline are still reported; the launcher waits longer.
  while (all->running > 0)
    if (!co_await all->changed.wait_until(deadline + kLastWords)) break;
}

task<WorkspacePtr> Workspaces::find(std::string name) {
  if (name == kDefault) co_return standard_;
  const bridge::Clock::time_point patience = bridge::Clock::now() + kResetWait;
  while (resetting_.contains(name))
    if (!co_await settled_.wait_until(patience)) co_return fail(Code::not_found, "Workspace not found");
  if (const auto known = named_.find(name); known != named_.end()) co_return known->second;
  CO_TRY_ASSIGN(const std::vector<json::Value> all, co_await launcher_.workspace_list());
  const auto there = std::ranges::find_if(
      all, [&](const json::Value& w) { return w.value("name", "") == name && w.value("state", "") != "ending"; });
  if (there == all.end()) co_return fail(Code::not_found, "Workspace not found");
  const std::string home = there->value("home", launcher_.greeting().home);
  if (const auto known = named_.find(name); known != named_.end()) co_return known->second;  // two requests asked at once
  // A request that was under way when its workspace ended holds the slot, so that it never continues in another workspace.
  const auto idle = std::ranges::find_if(free_, [](const WorkspacePtr& slot) { return slot.use_count() == 1; });
  WorkspacePtr workspace;
  if (idle != free_.end()) {
    workspace = std::move(*idle);
    free_.erase(idle);
    workspace->become(name, home);
  } else {
    Config config = with_budget(named_config(config_, home), kept_);
    config.workspace = name;
    workspace = std::make_shared<Workspace>(launcher_, config);
  }
  workspace->paused = is_paused(*there);
  // A later workspace of the same name is a different one.
  workspace->made = there->value("created_at", "");
  workspace->record = Keep::make("workspace", {{"name", name}, {"made", workspace->made}});
  named_[name] = workspace;
  co_return workspace;
}

// However its holder ends, the next may begin.
struct Workspaces::Pacing {
  Pacing(Workspaces& of, WorkspacePtr whose) : workspaces(of), workspace(std::move(whose)) { workspace->pacing = true; }
  ~Pacing() {
    workspace->pacing = false;
    workspaces.settled_.notify_all();
  }
  Pacing(const Pacing&) = delete;
  Pacing& operator=(const Pacing&) = delete;
  Workspaces& workspaces;
  const WorkspacePtr workspace;
};

task<void> Workspaces::await_pace(WorkspacePtr workspace) {
  const bridge::Clock::time_point patience = bridge::Clock::now() + kResetWait;
  while (workspace->pacing)
    if (!co_await settled_.wait_until(patience)) co_return fail(Code::timeout, "the workspace is being paused or resumed");
  co_return Status{};
}

task<void> Workspaces::pause(std::string name) {
  CO_TRY_ASSIGN(const WorkspacePtr workspace, co_await find(name));
  CO_TRY(co_await await_pace(workspace));
  if (workspace->paused) co_return Status{};
  const Pacing pacing(*this, workspace);
  on_stop(name);
  workspace->shell.hold(true);  // before the pause: a stopped process cannot be ended
  const Status done = co_await launcher_.workspace_pause(name);
  // Without an answer in time the pause may still happen; the next request then wakes the workspace.
  workspace->paused = (done || done.error().code == Code::timeout) && workspace->name == name;
  if (!workspace->paused) workspace->shell.hold(false);
  CO_TRY(done);
  co_return Status{};
}

task<void> Workspaces::wake(WorkspacePtr workspace) {
  CO_TRY(co_await await_pace(workspace));
  if (!workspace->paused) co_return Status{};
  const Pacing pacing(*this, workspace);
  const std::string name = workspace->name;
  CO_TRY(co_await launcher_.workspace_resume(name));
  workspace->paused = false;
  workspace->shell.hold(false);
  co_return Status{};
}

task<void> Workspaces::look() {
  CO_TRY_ASSIGN(const std::vector<json::Value> all, co_await launcher_.workspace_list());
  standard_->paused =
      std::ranges::any_of(all, [](const json::Value& w) { return w.value("name", "") == kDefault && is_paused(w); });
  co_return Status{};
}

task<json::Value> Workspaces::reset(std::string name) {
  if (resetting_.contains(name)) co_return fail(Code::already_exists, "workspace " + quote(name) + " is being reset");
  struct Under {
    Workspaces& workspaces;
    const std::string name;
    ~Under() {
      workspaces.resetting_.erase(name);
      workspaces.settled_.notify_all();
    }
  };
  resetting_.insert(name);
  const Under under{*this, name};
  CO_TRY_ASSIGN(const std::vector<json::Value> all, co_await launcher_.workspace_list());
  const auto known = std::ranges::find(all, name, [](const json::Value& w) { return w.value("name", ""); });
  if (known == all.end()) co_return fail(Code::not_found, "Workspace not found");
  json::Value request = {{"name", name}};
  for (const char* same : {"idle_seconds", "persistent"})
    if (known->contains(same)) request[same] = (*known)[same];
  const json::Value::json_pointer limit("/disk/limit");
  if (known->contains(limit)) request["disk_bytes"] = (*known)[limit];
  CO_TRY(co_await launcher_.workspace_destroy(name, "reset"));
  auto made = co_await launcher_.workspace_create(std::move(request));
  if (!made) co_return std::unexpected(std::move(made).error().wrap("the workspace has ended and could not be made again"));
  co_return made;
}

// Its sessions have ended before it and have left their tables.
void Workspaces::ended(const std::string& name) {
  on_end(name);
  on_stop(name);
  auto node = named_.extract(name);
  if (node.empty()) return;
  node.mapped()->record.erase();
  node.mapped()->become(kNone, launcher_.greeting().home);  // its state, observation, reports and hooks end with it
  free_.push_back(std::move(node.mapped()));
}

// A session prepared before the reload has the old policy, so neither it nor anything learnt in such sessions may serve later
// requests.
void Workspaces::policies_changed() {
  for (const WorkspacePtr& workspace : known()) {
    workspace->code.flush();
    workspace->jupyter.flush();
  }
  on_policies();
}

}  // namespace caisson::services
