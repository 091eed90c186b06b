#include "agent/session/tenants.h"

#include <algorithm>

namespace caisson::session {
namespace {

constexpr std::string_view kDefault = "default";
// Every workspace's output is kept apart, so that one cannot push out another's; one that is named gets a part of the room.
constexpr std::size_t kShare = 4;
constexpr std::chrono::seconds kLastWords{3};

Config named_config(Config config, std::string home) {
  config.workspace = std::move(home);  // WORKSPACE is a folder of the default one
  config.total_cap_bytes = std::max(config.total_cap_bytes / kShare, std::min(config.total_cap_bytes, std::size_t{1} << 20));
  config.warm_sessions = std::min<std::size_t>(config.warm_sessions, 1);
  config.stream_cap_bytes = std::min(config.stream_cap_bytes, config.total_cap_bytes);
  return config;
}

}  // namespace

Tenant::Tenant(bridge::LauncherClient& launcher, const Config& config, Toolchains& toolchains)
    : name(config.tenant),
      bash(launcher, config),
      shell(launcher, config),
      file(launcher, config),
      watches(file, launcher, config.idle_expiry),
      jupyter(launcher, config),
      code(launcher, config, toolchains),
      box(launcher, config) {}

void Tenant::become(const std::string& new_name) {
  name = new_name;
  bash.serve_workspace(new_name);
  shell.serve_workspace(new_name);
  file.serve_workspace(new_name);
  watches.forget_all();
  jupyter.serve_workspace(new_name);
  code.serve_workspace(new_name);
  box.serve_workspace(new_name);
}

Tenants::Tenants(bridge::LauncherClient& launcher, Config config)
    : launcher_(launcher), config_(std::move(config)), standard_(std::make_shared<Tenant>(launcher, config_, toolchains_)) {
  launcher_.on_workspace_end([this](const std::string& name) { ended(name); });
  launcher_.on_policy_reload([this] { policies_changed(); });
  launcher_.on_session_end([this](const bridge::SessionHandle& session) {
    for (const TenantPtr& tenant : known())
      if (tenant->name == session.workspace) tenant->box.observer.session_ended(session);
  });
}

Tenants::~Tenants() {
  launcher_.on_workspace_end(nullptr);
  launcher_.on_policy_reload(nullptr);
  launcher_.on_session_end(nullptr);
}

std::vector<TenantPtr> Tenants::known() const {
  std::vector<TenantPtr> out{standard_};
  for (const auto& [name, tenant] : named_) out.push_back(tenant);
  return out;
}

namespace {

struct Ending {
  explicit Ending(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::size_t running = 0;
  bridge::Notifier changed;
};

task<void> end_one(TenantPtr tenant, bridge::Clock::time_point deadline, std::shared_ptr<Ending> all) {
  Status done = co_await tenant->box.hooks.run(std::string(Hooks::kShutdown), deadline);
  --all->running;
  all->changed.notify_all();
  if (!done) co_return std::unexpected(std::move(done).error().wrap("workspace " + tenant->name));
  co_return done;
}

}  // namespace

asio::awaitable<void> Tenants::shut_down(bridge::Clock::time_point deadline) {
  auto all = std::make_shared<Ending>(launcher_.executor());
  for (const TenantPtr& tenant : known()) {
    ++all->running;
    spawn(launcher_.executor(), "shutdown hooks", end_one(tenant, deadline, all));
  }
  // What was killed at the deadline is still to be said; the launcher waits longer.
  while (all->running > 0)
    if (!co_await all->changed.wait_until(deadline + kLastWords)) break;
}

task<TenantPtr> Tenants::find(std::string name) {
  if (name == kDefault) co_return standard_;
  if (const auto known = named_.find(name); known != named_.end()) co_return known->second;
  CO_TRY_ASSIGN(const std::vector<json::Value> all, co_await launcher_.workspace_list());
  const bool there = std::ranges::any_of(
      all, [&](const json::Value& w) { return w.value("name", "") == name && w.value("state", "") == "ready"; });
  if (!there) co_return fail(Code::not_found, "Workspace not found");
  if (const auto known = named_.find(name); known != named_.end()) co_return known->second;  // asked for twice at once
  // A request that was under way when its workspace ended holds the slot: it must not wake up in another's.
  const auto idle = std::ranges::find_if(free_, [](const TenantPtr& slot) { return slot.use_count() == 1; });
  TenantPtr tenant;
  if (idle != free_.end()) {
    tenant = std::move(*idle);
    free_.erase(idle);
    tenant->become(name);
  } else {
    Config config = named_config(config_, launcher_.greeting().home);
    config.tenant = name;
    tenant = std::make_shared<Tenant>(launcher_, config, toolchains_);
  }
  named_[name] = tenant;
  co_return tenant;
}

// Its sessions have ended before it, and each has left its table.
void Tenants::ended(const std::string& name) {
  auto node = named_.extract(name);
  if (node.empty()) return;
  node.mapped()->box.serve_workspace(name);  // its observation, reports and hooks end with it
  free_.push_back(std::move(node.mapped()));
}

// A session that was prepared before has the old policy, and may not serve a request that comes after.
void Tenants::policies_changed() {
  toolchains_.forget();
  standard_->code.flush();
  for (const auto& [name, tenant] : named_) tenant->code.flush();
}

}  // namespace caisson::session
