// caisson-homes: the homes of persistent workspaces, one directory each below a directory of the operator's. What has to be done
// there can take as long as a tenant likes, so it is not done by the launcher but by this, in one run for each task:
//
//   open NAME BYTES INODES     makes or finds the home: {"uid", "enforced_by"}; where it is measured, also "why" and:
//   measure NAME BYTES INODES  {"bytes", "inodes", "full"?}, as far as it is over one of these
//   remove NAME                {}
//
// fd 3 is the directory; the answer is one JSON object on fd 1, {"error"} where it failed. DIR/NAME belongs to root, is closed
// to everybody else and holds one directory, `home`. Whom that belongs to is the tenant's uid, and the only record of it: it is
// as durable as the files. No two homes have one uid.
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <map>

#include "launcher/base/homes_protocol.h"
#include "launcher/base/json.h"
#include "launcher/base/sys.h"
#include "launcher/homes/quota.h"
#include "launcher/homes/tree.h"

namespace caisson::homes {
namespace {

constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
constexpr const char* kHome = "home";

struct Task {
  std::string what, name;
  Use most;
};

Result<std::uint64_t> number(const char* text) {
  std::uint64_t value = 0;
  const char* end = text + std::string_view(text).size();
  if (const auto [at, error] = std::from_chars(text, end, value); error != std::errc() || at != end || value == 0)
    return fail(Code::invalid_argument, "not a number above 0: " + quote(text));
  return value;
}

Result<Task> task_of(int argc, char** argv) {
  Task task;
  if (argc < 3) return fail(Code::invalid_argument, "usage: caisson-homes open|measure|remove NAME [BYTES INODES]");
  task.what = argv[1];
  task.name = argv[2];
  const bool remove = task.what == "remove";
  if (argc != (remove ? 3 : 5) || (!remove && task.what != "open" && task.what != "measure"))
    return fail(Code::invalid_argument, "wrong arguments for " + quote(task.what));
  if (task.name.empty() || task.name.starts_with('.') || task.name.contains('/'))
    return fail(Code::invalid_argument, "not the name of a workspace: " + quote(task.name));
  if (remove) return task;
  TRY_ASSIGN(task.most.bytes, number(argv[3]));
  TRY_ASSIGN(task.most.inodes, number(argv[4]));
  return task;
}

// Whose home that is; nullopt: there is none.
Result<std::optional<uid_t>> owner(const std::string& name) {
  auto home = sys::openat2(kDirectoryFd, name + "/" + kHome, O_PATH | O_DIRECTORY, kInside);
  if (!home && home.error().sys == ENOENT) return std::nullopt;
  if (!home) return std::unexpected(std::move(home).error());
  struct stat st{};
  if (::fstat(home->get(), &st) != 0) return sys_error("stat the home");
  if (st.st_uid != st.st_gid || st.st_uid < kFirstHomeUid || st.st_uid > kLastHomeUid)
    return fail(Code::permission_denied, "the home of " + quote(name) + " belongs to uid " + std::to_string(st.st_uid) +
                                             " and gid " + std::to_string(st.st_gid) + ", not to a workspace (" +
                                             std::to_string(kFirstHomeUid) + " to " + std::to_string(kLastHomeUid) +
                                             "): was the directory copied, or are ids mapped differently?");
  return st.st_uid;
}

// The uid of that home, and of a new one: the next after the highest, so that one that was removed is not soon another's.
Result<uid_t> choose(const std::string& name) {
  std::map<uid_t, std::string> owners;
  std::optional<uid_t> mine;
  TRY_ASSIGN(Fd again, sys::openat(kDirectoryFd, ".", O_RDONLY | O_DIRECTORY));
  DIR* dir = ::fdopendir(again.release());
  if (dir == nullptr) return sys_error("read the directory of workspaces");
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] == '.') continue;
    auto uid = owner(entry->d_name);
    if (name == entry->d_name) {
      TRY_ASSIGN(mine, std::move(uid));
    } else if (uid && *uid) {
      owners.emplace(**uid, entry->d_name);
    }
  }
  ::closedir(dir);
  if (mine) {
    const auto other = owners.find(*mine);
    if (other == owners.end()) return *mine;
    return fail(Code::permission_denied, "the homes of " + quote(name) + " and " + quote(other->second) + " belong to one uid, " +
                                             std::to_string(*mine) + ": they could not be kept apart");
  }
  if (owners.empty() || owners.rbegin()->first < kLastHomeUid) return owners.empty() ? kFirstHomeUid : owners.rbegin()->first + 1;
  for (uid_t uid = kFirstHomeUid; uid <= kLastHomeUid; ++uid)
    if (!owners.contains(uid)) return uid;
  return fail(Code::limit, "no uid is left for another workspace");
}

Result<Fd> open_place(const std::string& name) {
  TRY_ASSIGN(Fd place, sys::openat2(kDirectoryFd, name, O_RDONLY | O_DIRECTORY, kInside));
  struct stat st{};
  if (::fstat(place.get(), &st) != 0) return sys_error("stat the workspace's directory");
  if (st.st_uid != ::geteuid()) return fail(Code::permission_denied, quote(name) + " belongs to another user");
  return place;
}

Result<json::Value> measure_home(const Task& task) {
  TRY_ASSIGN(const auto uid, owner(task.name));
  if (!uid) return fail(Code::not_found, "no home of " + quote(task.name));
  TRY_ASSIGN(const Fd home, sys::openat2(kDirectoryFd, task.name + "/" + kHome, O_PATH | O_DIRECTORY, kInside));
  TRY_ASSIGN(const std::string said, as_tenant(*uid, [&]() -> Result<std::string> {
               TRY_ASSIGN(const Use use, measure(home.get(), task.most));
               json::Value answer{{"bytes", use.bytes}, {"inodes", use.inodes}};
               if (use.bytes > task.most.bytes || use.inodes > task.most.inodes)
                 answer["full"] = "its home is over its limit of " + std::to_string(task.most.bytes) + " bytes and " +
                                  std::to_string(task.most.inodes) + " files";
               return json::dump(answer);
             }));
  return json::parse(said);
}

Result<json::Value> open_home(const Task& task) {
  // Two at once would choose one uid: the next after the highest. Held until we end.
  TRY_ASSIGN(const Fd lock, sys::openat(kDirectoryFd, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  if (::flock(lock.get(), LOCK_EX) != 0) return sys_error("lock the directory of workspaces");
  TRY_ASSIGN(const uid_t uid, choose(task.name));
  if (::mkdirat(kDirectoryFd, task.name.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("mkdir " + quote(task.name));
  TRY_ASSIGN(const Fd place, open_place(task.name));
  // The tenant makes it, for a launcher in a container may become another uid but give nothing away (CAP_CHOWN). The directory
  // above is root's alone, so nobody else comes here while this one is open.
  if (::fchmod(place.get(), 0777) != 0) return sys_error("open the workspace's directory");
  const auto made = as_tenant(uid, [&]() -> Result<std::string> {
    if (::mkdirat(place.get(), kHome, 0700) != 0 && errno != EEXIST) return sys_error("mkdir the home");
    return "";
  });
  if (::fchmod(place.get(), 0700) != 0) return sys_error("close the workspace's directory");
  if (!made) return std::unexpected(made.error());
  TRY_ASSIGN(const auto now, owner(task.name));
  if (now != uid) return fail(Code::internal, "the home is not its tenant's");
  auto home = sys::openat2(place.get(), kHome, O_RDONLY | O_DIRECTORY, kInside);  // where root is not above modes, it cannot
  const Status limited = home ? limit_project(home->get(), uid, task.most) : Status(std::unexpected(home.error()));
  if (limited) return json::Value{{"uid", uid}, {"enforced_by", "project_quota"}};
  json::Value answer{{"uid", uid}, {"enforced_by", "measured"}, {"why", limited.error().text()}};
  TRY_ASSIGN(const json::Value use, measure_home(task));
  answer.update(use);
  return answer;
}

Result<json::Value> remove_home(const Task& task) {
  TRY_ASSIGN(const auto uid, owner(task.name));
  TRY_ASSIGN(const Fd place, open_place(task.name));
  if (uid) {
    TRY_ASSIGN(const Fd home, sys::openat2(place.get(), kHome, O_PATH | O_DIRECTORY, kInside));
    TRY(as_tenant(*uid, [&]() -> Result<std::string> {
      TRY(empty(home.get()));
      return "";
    }));
    if (::unlinkat(place.get(), kHome, AT_REMOVEDIR) != 0) return sys_error("remove the home");
  }
  if (::unlinkat(kDirectoryFd, task.name.c_str(), AT_REMOVEDIR) != 0) return sys_error("remove " + quote(task.name));
  return json::Value::object();
}

Result<json::Value> run(int argc, char** argv) {
  TRY_ASSIGN(const Task task, task_of(argc, argv));
  return task.what == "open" ? open_home(task) : task.what == "measure" ? measure_home(task) : remove_home(task);
}

}  // namespace
}  // namespace caisson::homes

int main(int argc, char** argv) {
  const auto done = caisson::homes::run(argc, argv);
  const caisson::json::Value answer = done ? *done : caisson::json::Value{{"error", done.error().text()}};
  return std::puts(caisson::json::dump(answer).c_str()) < 0 || std::fflush(stdout) != 0 ? 2 : done ? 0 : 1;
}
