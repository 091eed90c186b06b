#include "launcher/homes/last_uid.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/common/base/sys.h"

namespace caisson::homes {
namespace {

constexpr const char* kName = ".lock";
constexpr const char* kNew = ".lock.new";
constexpr std::size_t kMaxMark = 256;

bool of_range(const Range& range, const std::string& name, const json::Value& value) {
  return name == range.name && value.is_number_unsigned() && value >= range.first && value <= range.last;
}

}  // namespace

Result<Mark> Mark::take(int directory, std::string where) {
  Mark mark(directory, std::move(where));
  for (;;) {
    TRY_ASSIGN(mark.file_, sys::openat(directory, kName, O_RDONLY | O_CREAT | O_NOFOLLOW, 0600));
    if (::flock(mark.file_.get(), LOCK_EX) != 0) return sys_error("lock " + mark.where_);
    // The holder of the lock may have replaced the file: the new one is then the one to wait for.
    struct stat ours{}, now{};
    if (::fstat(mark.file_.get(), &ours) != 0) return sys_error("stat the mark");
    const int found = ::fstatat(directory, kName, &now, AT_SYMLINK_NOFOLLOW);
    if (found != 0 && errno != ENOENT) return sys_error("stat the mark");
    if (found == 0 && ours.st_dev == now.st_dev && ours.st_ino == now.st_ino) break;
  }
  if (auto done = mark.read(); !done)
    return std::unexpected(std::move(done).error().wrap("the last uid that was given, '.lock' in " + mark.where_ +
                                                        ", cannot be known, so none is given; " + mark.way_out()));
  return mark;
}

Status Mark::read() {
  struct stat st{};
  if (::fstat(file_.get(), &st) != 0) return sys_error("stat it");
  if (!S_ISREG(st.st_mode) || st.st_uid != ::geteuid() || (st.st_mode & 022) != 0)
    return fail(Code::permission_denied, "others than root can write to it");
  TRY_ASSIGN(const std::string text, sys::read_fd(file_.get(), kMaxMark));
  // A mark is never written in place and cannot be written to. What can is a lock in which none was put yet.
  if (text.empty() && (st.st_mode & S_IWUSR) != 0) return {};
  TRY_ASSIGN(last_, json::parse(text));
  if (!last_.is_object() || last_.empty() || !std::ranges::all_of(last_.items(), [](const auto& member) {
        return of_range(kHomeUids, member.key(), member.value()) || of_range(kWorkspaceUids, member.key(), member.value());
      }))
    return fail(Code::invalid_argument, "it does not hold uids of workspaces: " + quote(text, 80));
  return {};
}

Status Mark::raise(const Range& range, uid_t uid) {
  if (uid <= last(range)) return {};
  last_[range.name] = uid;
  if (::unlinkat(directory_, kNew, 0) != 0 && errno != ENOENT) return sys_error("remove what an earlier one left");
  TRY_ASSIGN(Fd made, sys::openat(directory_, kNew, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0400));
  // Before it has its name: whoever opens it from then on waits for us, as for the one that it replaces.
  if (::flock(made.get(), LOCK_EX) != 0) return sys_error("lock the new mark");
  TRY(sys::write_all(made.get(), json::dump(last_) + "\n"));
  if (::fsync(made.get()) != 0) return sys_error("write the mark in " + where_);
  if (::renameat(directory_, kNew, directory_, kName) != 0) return sys_error("rename the mark in " + where_);
  file_ = std::move(made);
  if (::fsync(directory_) != 0) return sys_error("write " + where_);
  return {};
}

Error Mark::used_up(const Range& range) const {
  return fail(Code::limit, "no uid is left for another workspace, each of " + std::to_string(range.first) + " to " +
                               std::to_string(range.last) + " has been given once, and none is given to two; " + way_out())
      .error();
}

std::string Mark::way_out() const {
  return "once no directory that is granted to workspaces holds files of earlier ones, remove '.lock' in " + where_ +
         ": uids are then given from the beginning of the range";
}

}  // namespace caisson::homes
