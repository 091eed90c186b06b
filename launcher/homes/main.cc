// caisson-homes: the homes of persistent workspaces, one directory each below a directory of the operator's. What has to be done
// there can take as long as a tenant likes, so it is not done by the launcher but by this, in one run for each task:
//
//   open NAME BYTES INODES     makes or finds the home: {"uid", "enforced_by"}; where it is measured, also "why" and:
//   measure NAME BYTES INODES  {"bytes", "inodes", "full"?}, as far as it is over one of these
//   remove NAME                {}
//   uid                        {"uid"} for a workspace without a home on disk
//   make TAG BYTES INODES      a home that ends with its workspace, where nothing can be mounted: {"uid", "place"} and as `open`;
//                              `place` is its NAME from then on
//   sweep TAG                  removes those that were made with another tag
//   stop PID...                {"stopped", "left"}: all processes of sessions whose first ones these are (pause.h)
//   continue LEFT PID...       {"continued"}
//   freeze, thaw               {}: fd 3 is a cgroup, and all below it stands still, or goes on
//   weigh GROUP...             {"over", "unread"}: whose memory is over a limit (memory_use.h)
//
// fd 3 is the directory, fd 0 the launcher's own; the answer is one JSON object on fd 1, {"error"} where it failed. DIR/NAME
// belongs to root, is closed to everybody else and holds one directory, `home`. Whom that belongs to is the tenant's uid, and the
// only record of it: it is as durable as the files. No two homes have one uid, now or ever (last_uid.h). A home that was `made`
// is used where it is, so its directory is /home/workspaces, through which everybody may pass and of which nobody can read the
// names.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/directory.h"
#include "launcher/homes/home_tree.h"
#include "launcher/homes/last_uid.h"
#include "launcher/homes/memory_use.h"
#include "launcher/homes/pause.h"
#include "launcher/homes/quota.h"
#include "launcher/homes/workspace_user.h"

namespace caisson::homes {
namespace {

constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
constexpr int kStateFd = 0;      // the directory of audit logs, which is the launcher's and outlives it
constexpr int kDirectoryFd = 3;  // of all homes; /dev/null where there are none
constexpr const char* kHome = "home";
constexpr const char* kHomes = "the directory of workspaces";
constexpr std::string_view kMade = "/home/workspaces";
constexpr const char* kClosed = ".closed";  // a directory in it that no user may enter

struct Task {
  std::string what, name;
  Use most;
  int directory = kDirectoryFd;
  Range uids = kHomeUids;
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
  if (argc == 2 && argv[1] == std::string_view("uid")) return Task{.what = "uid"};
  if (argc < 3)
    return fail(Code::invalid_argument,
                "usage: caisson-homes uid, sweep TAG, make TAG BYTES INODES, or open|measure|remove NAME "
                "[BYTES INODES]");
  task.what = argv[1];
  task.name = argv[2];
  const bool remove = task.what == "remove" || task.what == "sweep";
  if (argc != (remove ? 3 : 5) || (!remove && task.what != "open" && task.what != "measure" && task.what != "make"))
    return fail(Code::invalid_argument, "wrong arguments for " + quote(task.what));
  if (const std::string made = std::string(kMade) + "/"; task.name.starts_with(made) && task.what != "open") {
    task.name.erase(0, made.size());
    task.uids = kWorkspaceUids;
  }
  if (task.name.empty() || task.name.starts_with('.') || task.name.contains('/'))
    return fail(Code::invalid_argument, "not the name of a workspace: " + quote(task.name));
  if (remove) return task;
  TRY_ASSIGN(task.most.bytes, number(argv[3]));
  TRY_ASSIGN(task.most.inodes, number(argv[4]));
  return task;
}

// Whose home that is; nullopt: there is none.
Result<std::optional<uid_t>> owner(int directory, const std::string& name, const Range& uids = kHomeUids) {
  auto home = sys::openat2(directory, name + "/" + kHome, O_PATH | O_DIRECTORY, kInside);
  if (!home && home.error().sys == ENOENT) return std::nullopt;
  if (!home) return std::unexpected(std::move(home).error());
  struct stat st{};
  if (::fstat(home->get(), &st) != 0) return sys_error("stat the home");
  if (st.st_uid != st.st_gid || st.st_uid < uids.first || st.st_uid > uids.last)
    return fail(Code::permission_denied, "the home of " + quote(name) + " belongs to uid " + std::to_string(st.st_uid) +
                                             " and gid " + std::to_string(st.st_gid) + ", not to a workspace (" +
                                             std::to_string(uids.first) + " to " + std::to_string(uids.last) +
                                             "): was the directory copied, or are ids mapped differently?");
  return st.st_uid;
}

// The uid of that home, and of a new one: the next after the last that was given, and after the highest that is there, so that
// none is another's after it.
Result<uid_t> choose(const std::string& name, Mark& mark) {
  std::map<uid_t, std::string> owners;
  std::optional<uid_t> mine;
  uid_t last = mark.last(kHomeUids);
  TRY_ASSIGN(Fd again, sys::openat(kDirectoryFd, ".", O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const sys::Directory dir, sys::read_directory(std::move(again)));
  while (const char* entry = sys::next_name(dir.get())) {
    if (entry[0] == '.') continue;
    auto uid = owner(kDirectoryFd, entry);
    if (uid && *uid) last = std::max(last, **uid);
    if (name == entry) {
      TRY_ASSIGN(mine, std::move(uid));
    } else if (uid && *uid) {
      owners.emplace(**uid, entry);
    }
  }
  TRY(sys::all_read());
  if (mine) {
    if (const auto other = owners.find(*mine); other != owners.end())
      return fail(Code::permission_denied, "the homes of " + quote(name) + " and " + quote(other->second) +
                                               " belong to one uid, " + std::to_string(*mine) + ": they could not be kept apart");
  } else if (last == kHomeUids.last) {
    return std::unexpected(mark.used_up(kHomeUids));
  }
  const uid_t uid = mine ? *mine : last + 1;
  TRY(mark.raise(kHomeUids, std::max(last, uid)));
  return uid;
}

Result<Fd> open_place(int directory, const std::string& name) {
  TRY_ASSIGN(Fd place, sys::openat2(directory, name, O_RDONLY | O_DIRECTORY, kInside));
  struct stat st{};
  if (::fstat(place.get(), &st) != 0) return sys_error("stat the workspace's directory");
  if (st.st_uid != ::geteuid()) return fail(Code::permission_denied, quote(name) + " belongs to another user");
  return place;
}

// The tenant makes them, for a launcher in a container may become another uid but give nothing away (CAP_CHOWN). The directory
// above is root's alone, so nobody else comes here while this one is open; then it has `mode`.
Status make_in(int place, uid_t uid, mode_t mode, const std::vector<std::string>& directories) {
  if (::fchmod(place, 0777) != 0) return sys_error("open the workspace's directory");
  const auto made = as_tenant(uid, [&]() -> Result<std::string> {
    for (const std::string& one : directories)
      if (::mkdirat(place, one.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("mkdir the home");
    return "";
  });
  if (::fchmod(place, mode) != 0) return sys_error("close the workspace's directory");
  if (!made) return std::unexpected(made.error());
  return {};
}

Result<json::Value> measure_home(const Task& task) {
  TRY_ASSIGN(const auto uid, owner(task.directory, task.name, task.uids));
  if (!uid) return fail(Code::not_found, "no home of " + quote(task.name));
  TRY_ASSIGN(const Fd home, sys::openat2(task.directory, task.name + "/" + kHome, O_PATH | O_DIRECTORY, kInside));
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
  // Two at once would choose one uid: the next after the last. Held until we end.
  TRY_ASSIGN(Mark mark, Mark::take(kDirectoryFd, kHomes));
  TRY_ASSIGN(const uid_t uid, choose(task.name, mark));
  if (::mkdirat(kDirectoryFd, task.name.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("mkdir " + quote(task.name));
  TRY_ASSIGN(const Fd place, open_place(kDirectoryFd, task.name));
  TRY(make_in(place.get(), uid, 0700, {kHome}));
  TRY_ASSIGN(const auto now, owner(kDirectoryFd, task.name));
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
  TRY_ASSIGN(const auto uid, owner(task.directory, task.name, task.uids));
  TRY_ASSIGN(const Fd place, open_place(task.directory, task.name));
  if (uid) {
    if (task.directory == kDirectoryFd) {  // what is removed is no longer there to tell; not held while that takes its time
      TRY_ASSIGN(Mark mark, Mark::take(kDirectoryFd, kHomes));
      TRY(mark.raise(kHomeUids, *uid));
    }
    TRY_ASSIGN(const Fd home, sys::openat2(place.get(), kHome, O_PATH | O_DIRECTORY, kInside));
    TRY(as_tenant(*uid, [&]() -> Result<std::string> {
      TRY(empty(home.get()));
      return "";
    }));
    if (::unlinkat(place.get(), kHome, AT_REMOVEDIR) != 0) return sys_error("remove the home");
  }
  if (::unlinkat(task.directory, task.name.c_str(), AT_REMOVEDIR) != 0) return sys_error("remove " + quote(task.name));
  return json::Value::object();
}

// Kept in both directories, as far as there are two: either may be lost, or be another server's from now on.
Result<json::Value> give_uid() {
  std::vector<Mark> marks;
  struct stat state{}, homes{};
  if (::fstat(kStateFd, &state) != 0 || ::fstat(kDirectoryFd, &homes) != 0) return sys_error("stat the directories");
  TRY_ASSIGN(Mark own, Mark::take(kStateFd, "the directory of audit logs"));
  marks.push_back(std::move(own));
  if (S_ISDIR(homes.st_mode) && (homes.st_dev != state.st_dev || homes.st_ino != state.st_ino)) {
    TRY_ASSIGN(Mark other, Mark::take(kDirectoryFd, kHomes));
    marks.push_back(std::move(other));
  }
  uid_t last = 0;
  for (const Mark& mark : marks) last = std::max(last, mark.last(kWorkspaceUids));
  for (Mark& mark : marks) {
    if (last == kWorkspaceUids.last) return std::unexpected(mark.used_up(kWorkspaceUids));
    TRY(mark.raise(kWorkspaceUids, last + 1));
  }
  return json::Value{{"uid", last + 1}};
}

// A directory of ours that others may pass, or only we: nobody else could have put anything in it.
Status own_directory(int at, const char* name, mode_t mode) {
  if (::mkdirat(at, name, mode) != 0 && errno != EEXIST)
    return sys_error("mkdir " + std::string(kMade) + ", which needs a place that can be written (--tmpfs " + std::string(kMade) +
                     ":exec,mode=711 where the container is read-only)");
  TRY_ASSIGN(const Fd made, sys::openat2(at, name, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS));
  struct stat st{};
  if (::fstat(made.get(), &st) != 0) return sys_error("stat " + quote(name));
  if (st.st_uid != ::geteuid()) return fail(Code::permission_denied, quote(name) + " belongs to another user");
  if ((st.st_mode & 07777) != mode && ::fchmod(made.get(), mode) != 0) return sys_error("chmod " + quote(name));
  return {};
}

Result<Fd> open_made() {
  TRY(own_directory(AT_FDCWD, kMade.data(), 0711));
  TRY_ASSIGN(Fd made, sys::openat2(AT_FDCWD, std::string(kMade), O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS));
  TRY(own_directory(made.get(), kClosed, 0700));
  return made;
}

// Made where nobody comes and then put where everybody may pass: while it can be written to it is nobody's but the tenant's.
Result<json::Value> make_home(const Task& task) {
  TRY_ASSIGN(json::Value answer, give_uid());
  const auto uid = answer["uid"].get<uid_t>();
  const std::string name = std::to_string(uid) + "-" + task.name, first = std::string(kClosed) + "/" + name;
  TRY_ASSIGN(const Fd made, open_made());
  if (::mkdirat(made.get(), first.c_str(), 0700) != 0) return sys_error("mkdir " + quote(name));
  TRY_ASSIGN(const Fd place, open_place(made.get(), first));
  TRY(make_in(place.get(), uid, 0711, {kHome, std::string(kHome) + "/.tmp"}));
  if (::renameat(made.get(), first.c_str(), made.get(), name.c_str()) != 0) return sys_error("rename " + quote(name));
  TRY_ASSIGN(const json::Value use,
             measure_home({.what = "measure", .name = name, .most = task.most, .directory = made.get(), .uids = kWorkspaceUids}));
  answer.update(use);
  answer.update({{"place", std::string(kMade) + "/" + name}, {"enforced_by", "measured"}});
  return answer;
}

Result<json::Value> sweep(const Task& task) {
  Task each{.what = "remove", .uids = kWorkspaceUids};
  auto made = sys::openat2(AT_FDCWD, std::string(kMade), O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
  if (!made && made.error().sys == ENOENT) return json::Value::object();
  if (!made) return std::unexpected(std::move(made).error());
  each.directory = made->get();
  Status done;
  for (const std::string& in : {std::string(), std::string(kClosed)}) {
    auto fd = sys::openat2(each.directory, "./" + in, O_RDONLY | O_DIRECTORY, kInside);
    if (!fd) continue;
    TRY_ASSIGN(const sys::Directory dir, sys::read_directory(std::move(*fd)));
    while (const char* entry = sys::next_name(dir.get())) {
      const std::string_view name = entry;
      if (name == kClosed || name.ends_with("-" + task.name)) continue;
      each.name = in.empty() ? std::string(name) : in + "/" + std::string(name);
      if (auto removed = remove_home(each); !removed && done) done = std::unexpected(std::move(removed).error());
    }
  }
  TRY(done);
  return json::Value::object();
}

bool is_pace(std::string_view what) { return what == "stop" || what == "continue" || what == "freeze" || what == "thaw"; }

Result<json::Value> pace(int argc, char** argv) {
  const std::string_view what = argv[1];
  if (what == "freeze" || what == "thaw") return freeze_all(kDirectoryFd, what == "freeze");
  std::vector<pid_t> roots;
  for (int i = what == "continue" ? 3 : 2; i < argc; ++i) {
    TRY_ASSIGN(const std::uint64_t pid, number(argv[i]));
    roots.push_back(static_cast<pid_t>(pid));
  }
  if (what == "stop") return stop_all(roots);
  return continue_all(roots, argc > 2 ? argv[2] : "");
}

Result<json::Value> run(int argc, char** argv) {
  if (argc > 1 && is_pace(argv[1])) return pace(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "weigh") return weigh({argv + 2, argv + argc});
  TRY_ASSIGN(Task task, task_of(argc, argv));
  if (task.what == "uid") return give_uid();
  if (task.what == "make") return make_home(task);
  if (task.what == "sweep") return sweep(task);
  Fd made;
  if (task.uids.first == kWorkspaceUids.first) {
    TRY_ASSIGN(made, open_made());
    task.directory = made.get();
  }
  return task.what == "open" ? open_home(task) : task.what == "measure" ? measure_home(task) : remove_home(task);
}

}  // namespace
}  // namespace caisson::homes

int main(int argc, char** argv) {
  const auto done = caisson::homes::run(argc, argv);
  const caisson::json::Value answer = done ? *done : caisson::json::Value{{"error", done.error().text()}};
  return std::puts(caisson::json::dump(answer).c_str()) < 0 || std::fflush(stdout) != 0 ? 2 : done ? 0 : 1;
}
