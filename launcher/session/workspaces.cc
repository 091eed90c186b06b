// The life of workspaces: made on demand, ended when asked or idle, with everything that is theirs.
#include <unistd.h>

#include <algorithm>

#include "launcher/base/sys.h"
#include "launcher/session/manager.h"
#include "launcher/session/requests.h"

namespace caisson::session {

Result<confine::Workspace> Manager::make_place(uid_t uid, gid_t gid, std::uint64_t disk_bytes) const {
  confine::Plan plan;
  plan.user_ns = true;
  plan.net_ns = features_.net_ns.ok();
  plan.private_tmp_options =
      "size=" + std::to_string(tmp_limits_.tmp_bytes) + ",nr_inodes=" + std::to_string(tmp_limits_.tmp_inodes);
  if (disk_bytes != 0)
    plan.home_options = "size=" + std::to_string(disk_bytes) + ",nr_inodes=" + std::to_string(1024 + disk_bytes / 16384);
  return builder_.make_workspace(plan, uid, gid);
}

Result<Workspace*> Manager::make_workspace(const WorkspaceRequest& request) {
  if (workspaces_.contains(request.name)) return fail(Code::already_exists, "there is a workspace " + quote(request.name));
  // Below this tier, or with one uid for all, they could see, signal or read each other: none is better than a weak one.
  if (features_.tier() != Tier::t3 || ::geteuid() != 0) {
    return fail(Code::unavailable, "workspaces are kept apart by a launcher that is root, in tier T3; this is uid " +
                                       std::to_string(::geteuid()) + ", " + std::string(tier_name(features_.tier())) +
                                       " (see: caisson probe)");
  }
  if (workspaces_.size() >= settings_.workspaces.most)
    return fail(Code::limit, "more than " + std::to_string(settings_.workspaces.most) + " workspaces");
  // The next one each time: what a workspace may have left in a grant for writing does not soon belong to another.
  const auto taken = [this](const auto& w) { return w.second->place.outer_uid == last_uid_; };
  do last_uid_ = last_uid_ < kFirstUid || last_uid_ == kLastUid ? kFirstUid : last_uid_ + 1;
  while (std::ranges::any_of(workspaces_, taken));  // fewer workspaces than uids
  auto made = std::make_unique<Workspace>();
  static_cast<WorkspaceRequest&>(*made) = request;
  made->created_at = sys::rfc3339(sys::realtime_ns());
  if (cgroups_) {
    TRY_ASSIGN(made->cgroup, cgroups_->make_node("w-" + sys::random_hex(8), settings_.workspaces.limits));
  }
  TRY_ASSIGN(made->place, make_place(last_uid_, last_uid_, request.disk_bytes));
  return (workspaces_[request.name] = std::move(made)).get();
}

Result<Workspace*> Manager::find_workspace(const json::Value& body) {
  TRY_ASSIGN(const auto name, json::get_string(body, "workspace"));
  const auto it = workspaces_.find(name.value_or(kDefaultWorkspace));
  if (it == workspaces_.end() || !it->second->ending.empty())
    return fail(Code::not_found, "no such workspace " + quote(*name, 80));
  return it->second.get();
}

std::size_t Manager::sessions_in(const Workspace& workspace) const {
  return static_cast<std::size_t>(std::ranges::count_if(entries_, [&](const auto& e) {
    return e.second->workspace == &workspace && (e.second->owner != 0 || !workspace.ending.empty());
  }));
}

void Manager::end_workspace(Workspace& workspace, const std::string& reason) {
  if (!workspace.ending.empty()) return;
  workspace.ending = reason;
  loop_.cancel(std::exchange(workspace.idle, 0));
  for (auto& [id, entry] : entries_)
    if (entry->workspace == &workspace) entry->session->end("workspace_end");
  loop_.after(0, [this, name = workspace.name] { settle(name); });
}

void Manager::settle(const std::string& name) {
  const auto it = workspaces_.find(name);
  if (it == workspaces_.end() || it->second.get() == default_ || sessions_in(*it->second) != 0) return;
  Workspace& workspace = *it->second;
  if (workspace.ending.empty()) {
    loop_.cancel(workspace.idle);
    workspace.idle = loop_.after(workspace.idle_seconds * 1'000'000, [this, name] {
      if (const auto found = workspaces_.find(name); found != workspaces_.end()) end_workspace(*found->second, "idle");
    });
    return;
  }
  record(audit::Event::workspace_end,
         {{"workspace", name}, {"reason", workspace.ending}, {"disk", disk_use(workspace, settings_.home)}});
  // With the descriptors go its namespaces, and with these its mounts and files.
  const auto ended = workspaces_.extract(it);
  const auto destroyers = std::move(ended.mapped()->destroyers);
  ended.mapped().reset();
  for (auto& [number, client] : clients_) client.connection->event({{"event", "workspace_end"}, {"workspace", name}});
  for (const auto& [number, request] : destroyers)
    if (ipc::Connection* client = connection(number)) client->reply(request, json::Value::object());
}

json::Value Manager::workspace_json(const Workspace& workspace) const {
  json::Value out{{"name", workspace.name},
                  {"uid", workspace.place.outer_uid},
                  {"created_at", workspace.created_at},
                  {"sessions", sessions_in(workspace)},
                  {"state", workspace.ending.empty() ? "ready" : "ending"}};
  out["disk"] = disk_use(workspace, settings_.home);
  if (&workspace == default_) return out;
  const policy::Limits& limits = settings_.workspaces.limits;
  out["idle_seconds"] = workspace.idle_seconds;
  out["disk_bytes"] = workspace.disk_bytes;
  for (const char* used : {"used_bytes", "used_inodes"}) out[used] = out["disk"].value(used, 0UL);
  out["limits"] = {{"memory_bytes", limits.memory_bytes}, {"processes", limits.processes}};
  out["limits"].update(cgroups_ ? json::Value{{"by", "cgroup"}, {"cpu_percent", limits.cpu_percent}}
                                : json::Value{{"by", "watchdog"}});
  return out;
}

Result<json::Value> Manager::answer_workspace_create(const json::Value& body) {
  TRY_ASSIGN(const WorkspaceRequest request, workspace_request(body, settings_.workspaces));
  TRY_ASSIGN(Workspace * workspace, make_workspace(request));
  json::Value described = workspace_json(*workspace);
  record(audit::Event::workspace_create, {{"workspace", described}});
  settle(workspace->name);  // nobody may ever use it
  return json::Value{{"workspace", std::move(described)}};
}

Result<json::Value> Manager::answer_workspace_destroy(const ipc::Connection& connection,
                                                      const ipc::Connection::Request& request) {
  TRY(only(request.body, {"workspace", "reason"}));
  TRY(need_string(request.body, "workspace"));
  TRY_ASSIGN(const auto reason, json::get_string(request.body, "reason"));
  TRY_ASSIGN(Workspace * workspace, find_workspace(request.body));
  if (workspace == default_) return fail(Code::permission_denied, "the default workspace cannot be destroyed");
  workspace->destroyers.emplace_back(connection.number(), request.id);
  end_workspace(*workspace, reason && !reason->empty() ? reason->substr(0, 256) : "destroyed");
  return json::Value();  // answered when nothing is left
}

}  // namespace caisson::session
