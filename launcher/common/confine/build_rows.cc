#include "launcher/common/confine/build_rows.h"

namespace caisson::confine {
namespace {

template <class Rows>
auto list(const Rows& rows) {
  return builder::List<typename Rows::value_type>{rows.data(), static_cast<std::uint32_t>(rows.size())};
}

}  // namespace

BuildRows::BuildRows(const Plan& p, const Program& filter) {
  for (const Bind& b : p.binds)
    binds.push_back({b.target.c_str(), b.source.c_str(), b.dev, b.ino, b.read_only, b.execute, b.device, b.directory, b.staged,
                     b.held, b.frozen});
  for (const std::string& d : p.directories) directories.push_back(d.c_str());
  for (const std::string& h : p.hide) hide.push_back(h.c_str());
  for (const auto& [path, content] : p.files) files.push_back({path.c_str(), content.c_str()});
  for (const auto& [path, target] : p.links) links.push_back({path.c_str(), target.c_str()});
  for (const LandlockRule& r : p.landlock) landlock.push_back({r.path.c_str(), r.access, r.required});
  for (const auto& [resource, limit] : p.limits) limits.push_back({resource, limit.rlim_cur, limit.rlim_max});
  plan = {.user_ns = p.user_ns,
          .mount_ns = p.mount_ns,
          .pid_ns = p.pid_ns,
          .ipc_ns = p.ipc_ns,
          .uts_ns = p.uts_ns,
          .net_ns = p.net_ns,
          .cgroup_ns = p.cgroup_ns,
          .change_uid = p.change_uid,
          .nested = p.nested,
          .root_ns = !p.system.empty(),
          .audited = p.enforces(Mechanism::denial_audit),
          .connected = p.connected,
          .proc = p.proc,
          .landlock_fs = p.landlock_fs,
          .landlock_scoped = p.landlock_scoped,
          .tmp_options = p.private_tmp_options.c_str(),
          .home_options = p.home_options.c_str(),
          .binds = list(binds),
          .directories = list(directories),
          .hide = list(hide),
          .files = list(files),
          .links = list(links),
          .landlock = list(landlock),
          .limits = list(limits),
          .filter = list(filter)};
  if (!p.policy) return;  // a workspace's own
  plan.private_home = p.policy->home == policy::Scope::private_;
  plan.private_tmp = p.policy->tmp == policy::Scope::private_;
  plan.exec_writable = p.policy->exec_writable;
  plan.umask = p.policy->umask;
  plan.hostname = p.policy->hostname.c_str();
  plan.home = p.policy->home_path.c_str();
}

}  // namespace caisson::confine
