#include "agent/session/tenants.h"

#include <algorithm>

namespace caisson::session {
namespace {

constexpr std::string_view kDefault = "default";
// Every workspace's output is kept apart, so that one cannot push out another's; one that is named gets a part of the room.
constexpr std::size_t kShare = 4;

Config named_config(Config config, std::string home) {
  config.workspace = std::move(home);  // WORKSPACE is a folder of the default one
  config.total_cap_bytes = std::max(config.total_cap_bytes / kShare, std::min(config.total_cap_bytes, std::size_t{1} << 20));
  config.stream_cap_bytes = std::min(config.stream_cap_bytes, config.total_cap_bytes);
  return config;
}

}  // namespace

Tenant::Tenant(bridge::LauncherClient& launcher, const Config& config)
    : name(config.tenant),
      bash(launcher, config),
      shell(launcher, config),
      file(launcher, config),
      watches(file, launcher, config.idle_expiry) {}

void Tenant::become(const std::string& new_name) {
  name = new_name;
  bash.serve_workspace(new_name);
  shell.serve_workspace(new_name);
  file.serve_workspace(new_name);
  watches.forget_all();
}

Tenants::Tenants(bridge::LauncherClient& launcher, Config config)
    : launcher_(launcher), config_(std::move(config)), standard_(std::make_shared<Tenant>(launcher, config_)) {
  launcher_.on_workspace_end([this](const std::string& name) { ended(name); });
}

Tenants::~Tenants() { launcher_.on_workspace_end(nullptr); }

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
    tenant = std::make_shared<Tenant>(launcher_, config);
  }
  named_[name] = tenant;
  co_return tenant;
}

// Its sessions have ended before it, and each has left its table.
void Tenants::ended(const std::string& name) {
  auto node = named_.extract(name);
  if (!node.empty()) free_.push_back(std::move(node.mapped()));
}

}  // namespace caisson::session
