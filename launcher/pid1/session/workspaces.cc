#include "launcher/pid1/session/workspaces.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/common/base/filesystem_ids.h"
#include "launcher/common/base/sys.h"
#include "launcher/pid1/session/process_tree.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kMeasureUs = 3'000'000, kMeasureShare = 20;  // at most a twentieth of the time goes into measuring

std::vector<std::string> homes_task(const char* task, std::string home, std::uint64_t disk_bytes) {
  return {task, std::move(home), std::to_string(disk_bytes), std::to_string(disk_inodes(disk_bytes))};
}

}  // namespace

Workspaces::Workspaces(const Host& host, const Clients& clients, Sessions& sessions)
    : host_(host),
      clients_(clients),
      sessions_(sessions),
      main_((workspaces_[kDefaultWorkspace] = std::make_unique<Workspace>(host.loop)).get()) {
  main_->name = kDefaultWorkspace;
  main_->created_at = host.boot_time;
  main_->home_path = host.settings.home;
}

Status Workspaces::set_up_main(const policy::Limits& tmp) {
  tmp_limits_ = tmp;
  const std::string& path = main_->home_path;
  const confine::Features& features = host_.features;
  struct stat home{};
  if (::stat(path.c_str(), &home) != 0) return sys_error("the workspace's home " + quote(path));
  const bool root = ::geteuid() == 0 && features.change_uid.ok();  // not one that has no capability
  // The owner of the home is the user of the sessions, so that a mounted directory just works; never root.
  main_->in_place = host_.settings.home_in_memory && (features.tier() == Tier::t0 || features.tier() == Tier::t1);
  main_->place.outer_uid = !root ? ::geteuid() : home.st_uid != 0 ? home.st_uid : kWorkspaceUid;
  main_->place.outer_gid = !root ? ::getegid() : home.st_gid != 0 ? home.st_gid : kWorkspaceUid;
  if (!root || features.user_ns.ok()) return {};
  // T0: every session has its own uid; the workspace's group is what they share the home by.
  const auto open_home = [&] { return ::chmod(path.c_str(), (home.st_mode & 07777) | 02070) == 0; };
  if (open_home()) return {};
  const FilesystemIds as_owner(home.st_uid, home.st_gid);  // as a launcher without CAP_FOWNER can
  if (open_home()) return {};
  return sys_error("open the home to its group");
}

Task<Result<confine::Workspace>> Workspaces::make_place(uid_t uid, gid_t gid, std::uint64_t disk_bytes) const {
  confine::Plan plan;
  plan.user_ns = host_.features.mounts();
  plan.net_ns = host_.features.net_ns.ok();
  if (host_.features.proc_full.ok()) plan.proc = confine::Proc::full;
  plan.private_tmp_options = confine::tmp_options(tmp_limits_);
  if (disk_bytes != 0)
    plan.home_options = "size=" + std::to_string(disk_bytes) + ",nr_inodes=" + std::to_string(disk_inodes(disk_bytes));
  co_return co_await host_.builder.make_workspace(host_.loop, plan, uid, gid);
}

Status Workspaces::admit(const WorkspaceRequest& request) const {
  if (workspaces_.contains(request.name)) return fail(Code::already_exists, "there is a workspace " + quote(request.name));
  // With one uid for all they could read, trace and end each other: none is better than a weak one.
  if (::geteuid() != 0 || !host_.features.change_uid.ok()) {
    return fail(Code::unavailable,
                "workspaces are kept apart by a uid for each, which needs a launcher that is root with SETUID, SETGID and KILL; "
                "this is uid " +
                    std::to_string(::geteuid()) + ", " + std::string(tier_name(host_.features.tier())) + " (see: caisson probe)");
  }
  if (workspaces_.size() >= host_.settings.workspaces.most)
    return fail(Code::limit, "more than " + std::to_string(host_.settings.workspaces.most) + " workspaces");
  if (request.persistent && !host_.features.mounts())
    return fail(Code::unavailable,
                "persistent workspaces need mount namespaces, tier T2 or T3: their homes are below a directory "
                "that is closed to everybody (see: caisson probe)");
  if (request.persistent && host_.settings.homes.empty())
    return fail(Code::unavailable, "this server keeps no workspaces: start it with --workspaces DIR (CAISSON_WORKSPACES)");
  return {};
}

void Workspaces::find_home(const WorkspaceRequest& request, Homes::Done done) const {
  host_.homes->run(host_.loop,
                   request.persistent        ? homes_task("open", request.name, request.disk_bytes)
                   : host_.features.mounts() ? std::vector<std::string>{"uid"}
                                             : homes_task("make", host_.boot_tag(), request.disk_bytes),
                   std::move(done));
}

Task<Result<json::Value>> Workspaces::make(WorkspaceRequest request, Result<json::Value> home) {
  if (!home) co_return std::unexpected(Error(home.error()).wrap("workspace " + quote(request.name)));
  const uid_t uid = home->value("uid", 0U);
  auto place = co_await make_place(uid, uid, request.persistent ? 0 : request.disk_bytes);
  auto made = place ? add(request, *home, std::move(*place)) : std::unexpected(std::move(place).error());
  if (!made && home->contains("place")) host_.homes->run(host_.loop, {"remove", home->value("place", "")}, [](const auto&) {});
  co_return made;
}

Result<json::Value> Workspaces::add(const WorkspaceRequest& request, const json::Value& home, confine::Workspace place) {
  TRY(admit(request));  // another may have been made of its name, or in its place
  auto made = std::make_unique<Workspace>(host_.loop);
  made->place = std::move(place);
  static_cast<WorkspaceRequest&>(*made) = request;
  made->created_at = sys::rfc3339(sys::realtime_ns());
  if (host_.cgroups) {
    TRY_ASSIGN(made->cgroup, host_.cgroups->make_node(std::string(confine::CgroupRoot::kNodePrefix) + sys::random_hex(8),
                                                      host_.settings.workspaces.limits));
  }
  if (request.persistent || !host_.features.mounts()) {
    made->in_place = !request.persistent;
    made->home = made->in_place ? home.value("place", "") : request.name;
    made->home_path = made->in_place ? made->home + "/home" : host_.homes->path(request.name);
    if (made->in_place) made->files = Workspace::Files::remove;
    made->enforced_by = home.value("enforced_by", "");
    if (made->enforced_by == "measured") {
      take_use(*made, home);
      measure_later(*made, kMeasureUs);
    } else {
      TRY_ASSIGN(made->place.home, sys::openat2(AT_FDCWD, made->home_path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS));
    }
  }
  json::Value described = describe(*made);
  host_.record(audit::Event::workspace_create, {{"workspace", described}});
  workspaces_[request.name] = std::move(made);
  settle(request.name);  // nobody may ever use it
  return json::Value{{"workspace", std::move(described)}};
}

// Another of this name may be there by now.
Workspace* Workspaces::same(const std::string& name, const std::string& since) const {
  const auto it = workspaces_.find(name);
  return it != workspaces_.end() && it->second->created_at == since ? it->second.get() : nullptr;
}

void Workspaces::measure_later(const Workspace& workspace, std::int64_t delay_us) {
  const auto again = [this, name = workspace.name, since = workspace.created_at]() -> Workspace* {
    Workspace* there = same(name, since);
    return there != nullptr && there->ending.empty() ? there : nullptr;
  };
  host_.loop.after(delay_us, [this, again] {
    const Workspace* due = again();
    if (due == nullptr) return;
    host_.homes->run(
        host_.loop, homes_task("measure", due->home, due->disk_bytes),
        [this, again, begin = sys::monotonic_us()](const Result<json::Value>& use) {
          Workspace* measured = again();
          if (measured == nullptr) return;
          take_use(*measured, use);
          for (const auto& [id, entry] : sessions_.all()) {  // nothing else stops what runs from growing the home further
            if (measured->full.is_null() || entry->workspace != measured || entry->session->state() != State::running) continue;
            json::Value hit{{"limit", LimitHit("workspace_disk").text},
                            {"by", "measured"},
                            {"what", measured->full},
                            {"disk", disk_json(*measured)}};
            (void)entry->log->append(audit::Event::limit_hit, std::move(hit));
            entry->session->end("disk", {{"limit", "workspace_disk_bytes"},
                                         {"allowed", measured->disk_bytes},
                                         {"figure", measured->use.value("bytes", 0ULL)}});
          }
          measure_later(*measured, std::max(kMeasureUs, kMeasureShare * (sys::monotonic_us() - begin)));
        });
  });
}

Result<Workspace*> Workspaces::find(const json::Value& body) const {
  TRY_ASSIGN(const auto name, json::get_string(body, "workspace"));
  const auto it = workspaces_.find(name.value_or(kDefaultWorkspace));
  if (it == workspaces_.end() || !it->second->ending.empty())
    return fail(Code::not_found, "no such workspace " + quote(*name, 80));
  return it->second.get();
}

void Workspaces::end(Workspace& workspace, const std::string& reason) {
  if (!workspace.ending.empty()) return;
  workspace.ending = reason;
  host_.loop.cancel(std::exchange(workspace.idle, 0));
  for (const auto& [id, entry] : sessions_.all())
    if (entry->workspace == &workspace) entry->session->end("workspace_end");
  settle_later(workspace.name);
}

std::shared_ptr<const void> Workspaces::use(Workspace& workspace) {
  ++workspace.users;
  return {&workspace, [this, &workspace](const void*) {
            if (--workspace.users == 0 && !workspace.ending.empty()) settle_later(workspace.name);
          }};
}

void Workspaces::settle_later(const std::string& name) {
  host_.loop.after(0, [this, name] { settle(name); });
}

void Workspaces::settle(const std::string& name) {
  const auto it = workspaces_.find(name);
  if (it == workspaces_.end() || it->second->is_default() || sessions_.count_in(*it->second) != 0) return;
  Workspace& workspace = *it->second;
  if (workspace.ending.empty()) {
    host_.loop.cancel(workspace.idle);
    workspace.idle = host_.loop.after(workspace.idle_seconds * 1'000'000, [this, name] {
      if (const auto found = workspaces_.find(name); found != workspaces_.end()) end(*found->second, "idle");
    });
    return;
  }
  if (workspace.users != 0 || workspace.files == Workspace::Files::removing) return;
  if (!host_.features.pid_ns()) kill_uid(workspace.place.outer_uid);  // a process that left the tree of its session
  if (workspace.files == Workspace::Files::remove) {
    workspace.files = Workspace::Files::removing;
    return host_.homes->run(host_.loop, {"remove", workspace.home}, [this, name](const Result<json::Value>& done) {
      Workspace& gone = *workspaces_.at(name);  // `removing`: nothing else takes it away
      gone.files = done ? Workspace::Files::removed : Workspace::Files::keep;
      if (!done) gone.ending += ": its files are left: " + done.error().text();
      settle(name);
    });
  }
  host_.record(audit::Event::workspace_end, {{"workspace", name}, {"reason", workspace.ending}, {"disk", disk_json(workspace)}});
  // With the descriptors go its namespaces, and with these its mounts and the files in them.
  host_.egress->close(workspace);
  const auto ended = workspaces_.extract(it);
  const auto destroyers = std::move(ended.mapped()->destroyers);
  ended.mapped().reset();
  clients_.tell_all({{"event", "workspace_end"}, {"workspace", name}});
  for (const auto& [number, request] : destroyers) clients_.answer(number, request, json::Value::object());
}

json::Value Workspaces::describe(const Workspace& workspace) const {
  json::Value out{{"name", workspace.name},
                  {"uid", workspace.place.outer_uid},
                  {"created_at", workspace.created_at},
                  {"sessions", sessions_.count_in(workspace)},
                  {"state", workspace.ending.empty() ? workspace.state : "ending"}};
  out["disk"] = disk_json(workspace);
  if (workspace.is_default()) return out;
  if (workspace.in_place) out["home"] = workspace.home_path;  // else where the policy has it
  const policy::Limits& limits = host_.settings.workspaces.limits;
  out["idle_seconds"] = workspace.idle_seconds;
  out["persistent"] = workspace.persistent;
  if (!workspace.full.is_null()) out["full"] = workspace.full;
  out["limits"] = {{"memory_bytes", limits.memory_bytes}, {"processes", limits.processes}};
  out["limits"].update(host_.cgroups ? json::Value{{"by", "cgroup"}, {"cpu_percent", limits.cpu_percent}}
                                     : json::Value{{"by", "watchdog"}});
  return out;
}

json::Value Workspaces::list() const {
  json::Value list = json::Value::array();
  for (const auto& [name, workspace] : workspaces_) list.push_back(describe(*workspace));
  return list;
}

void Workspaces::forget_domains() {
  for (auto& [name, workspace] : workspaces_) workspace->domains.clear();
}

// caisson-homes does it, for it takes time: by the workspace's cgroup, where it has one, else process by process.
Result<json::Value> Workspaces::pace(Workspace& workspace, bool pause, Homes::Done done) {
  const std::string from = pause ? "ready" : "paused", to = pause ? "paused" : "ready";
  if (workspace.state == to) return json::Value{{"state", to}};
  if (workspace.state != from) return fail(Code::unavailable, "workspace " + quote(workspace.name) + " is " + workspace.state);
  std::vector<std::string> task{pause ? "stop" : "continue"};
  if (workspace.cgroup) task = {pause ? "freeze" : "thaw"};
  else if (!pause) task.push_back(workspace.left);
  for (const auto& [id, entry] : sessions_.all())
    if (entry->workspace == &workspace && entry->owner != 0 && entry->session->pid() != 0 && !workspace.cgroup)
      task.push_back(std::to_string(entry->session->pid()));
  workspace.state = pause ? "pausing" : "resuming";
  const auto told = [this, from, to, pause, name = workspace.name, since = workspace.created_at,
                     done = std::move(done)](const Result<json::Value>& paced) {
    Workspace* there = same(name, since);
    if (there != nullptr) there->state = paced ? to : from;
    if (there != nullptr && paced) {
      there->left = paced->value("left", "-");
      for (const auto& [id, entry] : sessions_.all())
        if (entry->workspace == there) entry->session->hold(pause);
      host_.record(pause ? audit::Event::workspace_pause : audit::Event::workspace_resume, {{"workspace", name}});
    }
    done(paced ? Result<json::Value>(json::Value{{"state", to}}) : std::unexpected(paced.error()));
  };
  host_.homes->run(host_.loop, std::move(task), told, workspace.cgroup ? workspace.cgroup->fd() : -1);
  return json::Value();
}

Status Workspaces::destroy(Workspace& workspace, const std::string& reason, std::uint64_t client, std::int64_t request) {
  if (workspace.is_default()) return fail(Code::permission_denied, "the default workspace cannot be destroyed");
  workspace.destroyers.emplace_back(client, request);
  if (workspace.persistent) workspace.files = Workspace::Files::remove;
  end(workspace, reason);
  return {};
}

}  // namespace caisson::session
