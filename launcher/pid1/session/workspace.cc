#include "launcher/pid1/session/workspace.h"

#include <sys/statfs.h>

#include <algorithm>

#include "launcher/pid1/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kMinDisk = 1 << 20, kMaxIdleSeconds = 7 * 24 * 3600;

// It is a word in logs, headers and paths of URLs.
bool valid_name(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 63 && plain(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; });
}

Result<std::int64_t> bounded(const json::Value& body, const char* key, std::int64_t fallback, std::int64_t least,
                             std::int64_t most) {
  TRY_ASSIGN(const auto value, json::get_int(body, key));
  if (value && (*value < least || *value > most))
    return fail(Code::invalid_argument,
                "'" + std::string(key) + "' must be " + std::to_string(least) + " to " + std::to_string(most));
  return value.value_or(fallback);
}

}  // namespace

Result<WorkspaceRequest> workspace_request(const json::Value& body, const WorkspaceSettings& settings) {
  WorkspaceRequest out;
  TRY_ASSIGN(out.name, need_string(body, "name"));
  if (!valid_name(out.name))
    return fail(Code::invalid_argument,
                "'name' must be 1 to 63 of a-z, 0-9, '.', '_' and '-', and begin with a letter or digit: " + quote(out.name, 80));
  const auto most = static_cast<std::int64_t>(settings.disk_bytes);
  TRY_ASSIGN(const std::int64_t disk, bounded(body, "disk_bytes", most, kMinDisk, most));
  out.disk_bytes = static_cast<std::uint64_t>(disk);
  TRY_ASSIGN(out.idle_seconds, bounded(body, "idle_seconds", settings.idle_seconds, 1, kMaxIdleSeconds));
  TRY_ASSIGN(const auto persistent, json::get_bool(body, "persistent"));
  out.persistent = persistent.value_or(false);
  return out;
}

std::optional<Mechanism> missing_wall(const confine::Plan& plan, bool alone) {
  using enum Mechanism;
  const auto given_up = [&plan](Mechanism m) {
    return plan.mechanisms[static_cast<std::size_t>(m)].state == confine::MechanismState::disabled_by_policy;
  };
  // What a tier lacks of these its uids stand in for, with Landlock and seccomp around them (no file, no network, no System V).
  for (const Mechanism m : {user_ns, mount_ns, pid_ns, proc, net_ns, ipc_ns})
    if (alone ? !plan.enforces(m) : given_up(m)) return m;
  for (const Mechanism m : {uid, landlock, seccomp})
    if (!plan.enforces(m) && (m == uid || plan.tier != Tier::t3)) return m;
  return std::nullopt;
}

Status runs(const Workspace& workspace) {
  if (workspace.state == "ready") return {};
  return fail(Code::unavailable, "workspace " + quote(workspace.name) + " is " + workspace.state);
}

json::Value disk_json(const Workspace& workspace) {
  json::Value out = workspace.use.is_object() ? workspace.use : json::Value::object();
  if (workspace.disk_bytes != 0) out.update({{"limit", workspace.disk_bytes}, {"enforced_by", workspace.enforced_by}});
  struct statfs fs{};
  const Fd& own = workspace.place.home;
  if ((own ? ::fstatfs(own.get(), &fs) : ::statfs(workspace.home_path.c_str(), &fs)) != 0) return out;
  const auto block = static_cast<std::uint64_t>(fs.f_bsize);
  out.update({{"total_bytes", fs.f_blocks * block}, {"free_bytes", fs.f_bavail * block}, {"total_inodes", fs.f_files}});
  // A home that is only measured shares its filesystem. Of a project with a quota the kernel tells its own use (ext4, xfs).
  if (workspace.enforced_by != "measured")
    out.update({{"bytes", (fs.f_blocks - fs.f_bfree) * block}, {"inodes", fs.f_files - fs.f_ffree}});
  return out;
}

void take_use(Workspace& workspace, const Result<json::Value>& use) {
  workspace.full = use ? use->value("full", json::Value()) : "its home cannot be measured: " + use.error().text();
  if (use) workspace.use = {{"bytes", use->value("bytes", 0ULL)}, {"inodes", use->value("inodes", 0ULL)}};
}

}  // namespace caisson::session
