// The life of workspaces: made on demand, ended when asked or idle, with everything that is theirs.
#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/base/sys.h"
#include "launcher/session/manager.h"
#include "launcher/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kMeasureUs = 3'000'000, kMeasureShare = 20;  // at most a twentieth of the time goes into measuring

std::vector<std::string> homes_task(const char* task, std::string home, std::uint64_t disk_bytes) {
  return {task, std::move(home), std::to_string(disk_bytes), std::to_string(disk_inodes(disk_bytes))};
}

}  // namespace

Task<Result<confine::Workspace>> Manager::make_place(uid_t uid, gid_t gid, std::uint64_t disk_bytes) const {
  confine::Plan plan;
  plan.user_ns = features_.mounts();
  plan.net_ns = features_.net_ns.ok();
  if (features_.proc_full.ok()) plan.proc = confine::Proc::full;
  plan.private_tmp_options =
      "size=" + std::to_string(tmp_limits_.tmp_bytes) + ",nr_inodes=" + std::to_string(tmp_limits_.tmp_inodes);
  if (disk_bytes != 0)
    plan.home_options = "size=" + std::to_string(disk_bytes) + ",nr_inodes=" + std::to_string(disk_inodes(disk_bytes));
  co_return co_await builder_.make_workspace(loop_, plan, uid, gid);
}

Status Manager::admit(const WorkspaceRequest& request) const {
  if (workspaces_.contains(request.name)) return fail(Code::already_exists, "there is a workspace " + quote(request.name));
  // With one uid for all they could read, trace and end each other: none is better than a weak one.
  if (::geteuid() != 0 || !features_.change_uid.ok()) {
    return fail(Code::unavailable,
                "workspaces are kept apart by a uid for each, which needs a launcher that is root with SETUID, SETGID and KILL; "
                "this is uid " +
                    std::to_string(::geteuid()) + ", " + std::string(tier_name(features_.tier())) + " (see: caisson probe)");
  }
  if (workspaces_.size() >= settings_.workspaces.most)
    return fail(Code::limit, "more than " + std::to_string(settings_.workspaces.most) + " workspaces");
  if (request.persistent && !features_.mounts())
    return fail(Code::unavailable,
                "persistent workspaces need mount namespaces, tier T2 or T3: their homes are below a directory "
                "that is closed to everybody (see: caisson probe)");
  if (request.persistent && settings_.homes.empty())
    return fail(Code::unavailable, "this server keeps no workspaces: start it with --workspaces DIR (CAISSON_WORKSPACES)");
  return {};
}

// home: what caisson-homes says of a persistent one's, and whose uid it is.
Task<Result<json::Value>> Manager::make_workspace(WorkspaceRequest request, Result<json::Value> home) {
  if (!home) co_return std::unexpected(Error(home.error()).wrap("workspace " + quote(request.name)));
  const uid_t uid = home->value("uid", 0U);
  auto place = co_await make_place(uid, uid, request.persistent ? 0 : request.disk_bytes);
  auto made = place ? add_workspace(request, *home, std::move(*place)) : std::unexpected(std::move(place).error());
  if (!made && home->contains("place")) homes_->run(loop_, {"remove", home->value("place", "")}, [](const auto&) {});
  co_return made;
}

Result<json::Value> Manager::add_workspace(const WorkspaceRequest& request, const json::Value& home, confine::Workspace place) {
  TRY(admit(request));  // another may have been made of its name, or in its place
  auto made = std::make_unique<Workspace>(loop_);
  made->place = std::move(place);
  static_cast<WorkspaceRequest&>(*made) = request;
  made->created_at = sys::rfc3339(sys::realtime_ns());
  if (cgroups_) {
    TRY_ASSIGN(made->cgroup, cgroups_->make_node(std::string(confine::CgroupRoot::kNodePrefix) + sys::random_hex(8),
                                                 settings_.workspaces.limits));
  }
  if (request.persistent || !features_.mounts()) {
    made->in_place = !request.persistent;
    made->home = made->in_place ? home.value("place", "") : request.name;
    made->home_path = made->in_place ? made->home + "/home" : homes_->path(request.name);
    if (made->in_place) made->files = Workspace::Files::remove;
    made->enforced_by = home.value("enforced_by", "");
    if (made->enforced_by == "measured") {
      take_use(*made, home);
      measure_later(*made, kMeasureUs);
    } else {
      TRY_ASSIGN(made->place.home, sys::openat2(AT_FDCWD, made->home_path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS));
    }
  }
  json::Value described = workspace_json(*made);
  record(audit::Event::workspace_create, {{"workspace", described}});
  workspaces_[request.name] = std::move(made);
  settle(request.name);  // nobody may ever use it
  return json::Value{{"workspace", std::move(described)}};
}

void Manager::measure_later(const Workspace& workspace, std::int64_t delay_us) {
  // Another of this name may be there by then.
  const auto again = [this, name = workspace.name, since = workspace.created_at]() -> Workspace* {
    const auto it = workspaces_.find(name);
    return it != workspaces_.end() && it->second->created_at == since && it->second->ending.empty() ? it->second.get() : nullptr;
  };
  loop_.after(delay_us, [this, again] {
    const Workspace* due = again();
    if (due == nullptr) return;
    homes_->run(
        loop_, homes_task("measure", due->home, due->disk_bytes),
        [this, again, begin = sys::monotonic_us()](const Result<json::Value>& use) {
          Workspace* measured = again();
          if (measured == nullptr) return;
          take_use(*measured, use);
          for (auto& [id, entry] : entries_) {  // nothing else stops what runs from growing the home further
            if (measured->full.is_null() || entry->workspace != measured || entry->session->state() != State::running) continue;
            json::Value hit{
                {"limit", "workspace_disk"}, {"by", "measured"}, {"what", measured->full}, {"disk", disk_json(*measured)}};
            (void)entry->log->append(audit::Event::limit_hit, std::move(hit));
            entry->session->end("disk", {{"limit", "workspace_disk_bytes"},
                                         {"allowed", measured->disk_bytes},
                                         {"figure", measured->use.value("bytes", 0ULL)}});
          }
          measure_later(*measured, std::max(kMeasureUs, kMeasureShare * (sys::monotonic_us() - begin)));
        });
  });
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
  if (workspace.users != 0 || workspace.files == Workspace::Files::removing) return;
  if (!features_.pid_ns()) kill_uid(workspace.place.outer_uid);  // a process that left the tree of its session
  if (workspace.files == Workspace::Files::remove) {
    workspace.files = Workspace::Files::removing;
    return homes_->run(loop_, {"remove", workspace.home}, [this, name](const Result<json::Value>& done) {
      Workspace& gone = *workspaces_.at(name);  // `removing`: nothing else takes it away
      gone.files = done ? Workspace::Files::removed : Workspace::Files::keep;
      if (!done) gone.ending += ": its files are left: " + done.error().text();
      settle(name);
    });
  }
  record(audit::Event::workspace_end, {{"workspace", name}, {"reason", workspace.ending}, {"disk", disk_json(workspace)}});
  // With the descriptors go its namespaces, and with these its mounts and the files in them.
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
                  {"state", workspace.ending.empty() ? workspace.state : "ending"}};
  out["disk"] = disk_json(workspace);
  if (&workspace == default_) return out;
  if (workspace.in_place) out["home"] = workspace.home_path;  // else where the policy has it
  const policy::Limits& limits = settings_.workspaces.limits;
  out["idle_seconds"] = workspace.idle_seconds;
  out["persistent"] = workspace.persistent;
  if (!workspace.full.is_null()) out["full"] = workspace.full;
  out["limits"] = {{"memory_bytes", limits.memory_bytes}, {"processes", limits.processes}};
  out["limits"].update(cgroups_ ? json::Value{{"by", "cgroup"}, {"cpu_percent", limits.cpu_percent}}
                                : json::Value{{"by", "watchdog"}});
  return out;
}

Result<json::Value> Manager::answer_workspace_create(ipc::Connection& connection, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const WorkspaceRequest wanted, workspace_request(request.body, settings_.workspaces));
  TRY(admit(wanted));
  homes_->run(loop_,
              wanted.persistent    ? homes_task("open", wanted.name, wanted.disk_bytes)
              : features_.mounts() ? std::vector<std::string>{"uid"}
                                   : homes_task("make", boot_tag(), wanted.disk_bytes),
              [this, wanted, number = connection.number(), request](const Result<json::Value>& home) {
                begin(answer_when(number, request, make_workspace(wanted, home)));
              });
  return json::Value();  // answered by then
}

Result<json::Value> Manager::answer_workspace_list(ipc::Connection&, const ipc::Connection::Request& request) {
  TRY(only(request.body, {}));
  json::Value list = json::Value::array();
  for (const auto& [name, workspace] : workspaces_) list.push_back(workspace_json(*workspace));
  return json::Value{{"workspaces", std::move(list)}};
}

// Both ops. caisson-homes does it, for it takes time: by the workspace's cgroup, where it has one, else process by process.
Result<json::Value> Manager::answer_workspace_pace(ipc::Connection& connection, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"workspace"}));
  TRY(need_string(request.body, "workspace"));
  TRY_ASSIGN(Workspace * workspace, find_workspace(request.body));
  const bool pause = request.op == ipc::Op::workspace_pause;
  const std::string from = pause ? "ready" : "paused", to = pause ? "paused" : "ready";
  if (workspace->state == to) return json::Value{{"state", to}};
  if (workspace->state != from) return fail(Code::unavailable, "workspace " + quote(workspace->name) + " is " + workspace->state);
  std::vector<std::string> task{pause ? "stop" : "continue"};
  if (workspace->cgroup) task = {pause ? "freeze" : "thaw"};
  else if (!pause) task.push_back(workspace->left);
  for (const auto& [id, entry] : entries_)
    if (entry->workspace == workspace && entry->owner != 0 && entry->session->pid() != 0 && !workspace->cgroup)
      task.push_back(std::to_string(entry->session->pid()));
  workspace->state = pause ? "pausing" : "resuming";
  const auto told = [this, from, to, pause, name = workspace->name, since = workspace->created_at, number = connection.number(),
                     id = request.id](const Result<json::Value>& done) {
    const auto it = workspaces_.find(name);
    const bool there = it != workspaces_.end() && it->second->created_at == since;
    if (there) it->second->state = done ? to : from;
    if (there && done) {
      it->second->left = done->value("left", "-");
      for (auto& [key, entry] : entries_)
        if (entry->workspace == it->second.get()) entry->session->hold(pause);
      record(pause ? audit::Event::workspace_pause : audit::Event::workspace_resume, {{"workspace", name}});
    }
    ipc::Connection* client = this->connection(number);
    if (client != nullptr && done) client->reply(id, {{"state", to}});
    if (client != nullptr && !done) client->reply_error(id, done.error(), "request");
  };
  homes_->run(loop_, std::move(task), told, workspace->cgroup ? workspace->cgroup->fd() : -1);
  return json::Value();  // answered when it is done
}

Result<json::Value> Manager::answer_workspace_destroy(ipc::Connection& connection, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"workspace", "reason"}));
  TRY(need_string(request.body, "workspace"));
  TRY_ASSIGN(const auto reason, json::get_string(request.body, "reason"));
  TRY_ASSIGN(Workspace * workspace, find_workspace(request.body));
  if (workspace == default_) return fail(Code::permission_denied, "the default workspace cannot be destroyed");
  workspace->destroyers.emplace_back(connection.number(), request.id);
  if (workspace->persistent) workspace->files = Workspace::Files::remove;
  end_workspace(*workspace, reason && !reason->empty() ? reason->substr(0, 256) : "destroyed");
  return json::Value();  // answered when nothing is left
}

}  // namespace caisson::session
