#include "launcher/options/directories.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "launcher/common/base/filesystem_ids.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/egress/trust.h"
#include "launcher/common/kernel/caps.h"

namespace caisson {
namespace {

// Writable by everybody, and granted to no session.
const std::string kMemory = "/dev/shm";

Status make_directory(const std::string& path, mode_t mode) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (::mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir " + quote(path.substr(0, at)));
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return sys_error("mkdir " + quote(path));
  if (::access(path.c_str(), W_OK) != 0) return sys_error("write to " + quote(path));
  return {};
}

// As its owner, for giving it away would need CAP_CHOWN. Open to its group, by which sessions of T0 share it.
Status make_home(const std::string& path, uid_t uid, gid_t gid) {
  struct stat st{};
  const FilesystemIds as_owner(uid, gid);
  if ((::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) || ::lstat(path.c_str(), &st) != 0)
    return sys_error("mkdir " + quote(path));
  if (!S_ISDIR(st.st_mode) || st.st_uid != uid) return fail(Code::permission_denied, quote(path) + " is somebody else's");
  const std::string tmp = path + "/.tmp";  // of sessions that see it where it is (Domains::in_place)
  for (const std::string& one : {path, tmp})
    if ((::mkdir(one.c_str(), 0700) != 0 && errno != EEXIST) || ::chmod(one.c_str(), 02770) != 0)
      return sys_error("open " + quote(one));
  return {};
}

struct Row {
  std::string Options::* path;
  const char *in_memory, *id, *what;
};
constexpr Row kRows[] = {
    {&Options::run_dir, "/run", "", ""},
    {&Options::audit_dir, "/audit", "audit-in-memory",
     "AUDIT LOGS are in memory and end with the container: mount a volume that its user can write at /var/log/caisson"},
};

// `options.*row.path` where it can be written, else in a directory of ours alone.
Status settle(Options& options, const Row& row) {
  std::string& path = options.*row.path;
  const Status usual = make_directory(path, 0700);
  if (usual) return {};
  if (path != Options().*row.path) return usual;  // it was asked for: what is written elsewhere is missed
  const std::string ours = kMemory + "/caisson-" + std::to_string(::geteuid());
  Status made = make_directory(ours, 0700);
  if (made) made = make_directory(ours + row.in_memory, 0700);
  if (!made)
    return std::unexpected(Error(made.error())
                               .wrap("no place for " + quote(path) + " (" + usual.error().text() +
                                     "): mount a tmpfs or a volume there, or at /dev/shm"));
  path = ours + row.in_memory;
  if (*row.id != '\0') options.residual.emplace_back(row.id, row.what + (" (" + usual.error().text() + ")"));
  return {};
}

// Sessions have the uid of the home's owner where the launcher can change its own, and on a read-only filesystem nobody writes.
Status settle_home(Options& options) {
  const bool change = confine::caps_change_uid();
  struct statvfs filesystem{};
  const char* path = options.home.c_str();
  const int failed = ::statvfs(path, &filesystem) != 0            ? errno
                     : (filesystem.f_flag & ST_RDONLY) != 0       ? EROFS
                     : change || ::access(path, W_OK | X_OK) == 0 ? 0
                                                                  : errno;
  if (failed == 0) return {};
  const Error usual = sys_error("write to " + quote(options.home), failed).error();
  if (options.home != Options().home) return std::unexpected(usual);
  const uid_t uid = change ? session::kWorkspaceUid : ::geteuid();
  const gid_t gid = change ? session::kWorkspaceUid : ::getegid();
  options.home = kMemory + "/caisson-home-" + std::to_string(uid);
  options.home_in_memory = true;
  if (const Status made = make_home(options.home, uid, gid); !made)
    return std::unexpected(Error(made.error())
                               .wrap("no home for sessions (" + usual.text() + "): mount a volume or a tmpfs at " +
                                     quote(Options().home) + " that the container's user can write"));
  options.residual.emplace_back("home-in-memory",
                                "the HOME of sessions is in memory, " + options.home +
                                    ", within the container's --shm-size, and ends with it: mount a volume at " + Options().home +
                                    " that its user can write (" + usual.text() + ")");
  return {};
}

// Empty as yet: caisson-gate fills them for the first domain that needs them.
Status make_trust(const std::string& run) {
  for (const char* store : {egress::kTrustFolder, egress::kSystemsTrust, egress::kOpenersTrust})
    TRY(make_directory(run + store, 0755));
  return {};
}

}  // namespace

Status settle_directories(Options& options) {
  for (const Row& row : kRows) TRY(settle(options, row));
  TRY(make_trust(options.run_dir));
  TRY(settle_home(options));
  if (!options.homes.empty()) TRY(make_directory(options.homes, 0700));
  if (::geteuid() == 0 && !confine::caps_change_uid()) {
    if (!confine::caps_never())
      return fail(Code::unavailable,
                  "root without CAP_SETUID, but with other capabilities within reach, cannot give sessions a user of their own: "
                  "add the capabilities SETUID, SETGID and KILL, or drop all (--cap-drop=ALL), or give another --user");
    options.residual.emplace_back("root-without-capabilities",
                                  "launcher, agent and sessions are the container's root without a capability: what Landlock "
                                  "does not govern (modes, times) holds for the image's files, too, RLIMIT_NPROC not for the "
                                  "host's root; --user 1000 or the capabilities SETUID, SETGID and KILL mend both");
  }
  for (const auto& [id, what] : options.residual) sys::say("caisson-launcher: " + what);
  return {};
}

}  // namespace caisson
