// caisson-protect: what a policy's `protect` names, made read-only in one session, before its first program; and, when the
// session has ended, what is there by such a name that was not. What it reads there is a tenant's, so it is no work for the
// launcher: this runs for a moment, with power over the tenant's files alone.
//
//   session   in the session's mounts, as its user, with CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH in its user namespace
//   ended     enters the mount namespace that is fd 3 first, and changes nothing
//
// fd 0 is a memory file of entries, each a letter and a text that ends with NUL. The launcher writes what is to be done:
//   n NAME      what is protected: a name, or the end of a path
//   p PATH      a place that the session can write to; "= SOURCE" after it: where it is taken from
//   l PATH      another one, where only second names of protected files are looked for
//   h PATH      the home, which first gets what an empty one gets (common/freestanding/skel.h)
//   s PATH      another place of the plan, which is looked at by itself or not at all
// We write behind it what was done, which the launcher reads back from the kernel:
//   k PATH      has such a name          m PATH   is a mount point now, so that nobody moves it
//   t PATH      the same, the first of them, for reports
//   r PATH      is read-only now         + PATH   has such a name now (ended), the first of them; "# NUMBER": of so many
//   e TEXT      what went wrong          .        this was all
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/common/base/sys.h"
#include "launcher/common/build/mount_tree.h"
#include "launcher/common/confine/user_ns.h"
#include "launcher/common/freestanding/skel.h"
#include "launcher/protect/walk.h"

namespace caisson::protect {
namespace {

constexpr int kNotes = 0, kMountNs = 3;
constexpr std::size_t kMaxNotes = 1U << 20, kMaxAnswer = 256U << 10, kMaxNew = 50, kMaxNewBytes = 8192, kMaxTold = 2048;
constexpr int kLooks = 8;

struct Notes {
  std::vector<std::string> names;
  std::vector<Place> places;
  std::set<std::string> others, known;
  std::string home;
};

Result<Notes> read_notes() {
  if (::lseek(kNotes, 0, SEEK_SET) != 0) return sys_error("read the notes");
  TRY_ASSIGN(const std::string text, sys::read_fd(kNotes, kMaxNotes));
  Notes out;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\0', from), text.size());
    const char letter = text[from];
    std::string what = text.substr(from + 1, end - from - 1);
    from = end + 1;
    if (letter == 'h') out.home = std::move(what);
    else if (letter == 'n') out.names.push_back(std::move(what));
    else if (letter == 's') out.others.insert(std::move(what));
    else if (letter == 'k') out.known.insert(std::move(what));
    else if (letter == 'p' || letter == 'l') out.places.push_back({what, what, letter == 'p'});
    else if (letter == '=' && !out.places.empty()) out.places.back().source = std::move(what);
  }
  return out;
}

void note(std::string& out, char letter, const std::string& text = {}) { (out += letter) += text + '\0'; }

// Makes mount points of paths, in the session's root.
class Mounts {
 public:
  explicit Mounts(int root) : root_(root) {}

  // All that is at and below the path, read-only, behind directories that nobody moves. What is gone meanwhile is none.
  [[nodiscard]] Status close(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
      TRY(lay(path.substr(0, slash), false));
    return lay(path, true);
  }
  [[nodiscard]] const std::set<std::string>& held() const { return held_; }
  [[nodiscard]] const std::set<std::string>& closed() const { return closed_; }

 private:
  Status lay(const std::string& path, bool closed) {
    constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    const auto above = sys::openat2(root_, "." + path.substr(0, path.rfind('/')), O_PATH | O_DIRECTORY, kInside);
    const auto point = sys::openat2(root_, path.substr(1), O_PATH | O_NOFOLLOW, kInside);
    for (const auto* fd : {&above, &point}) {
      if (*fd) continue;
      if (const int e = fd->error().sys; e == ENOENT || e == ENOTDIR || e == ELOOP) return {};
      return std::unexpected(fd->error());
    }
    if (closed ? !writable_mount(point->get()) : !writable_mount(above->get())) return {};
    struct statx st{};
    if (::statx(point->get(), "", AT_EMPTY_PATH, STATX_TYPE, &st) != 0) return sys_error("stat " + quote(path));
    if (!closed && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) return {};
    if (held_.size() + closed_.size() >= kMaxMounts)
      return fail(Code::limit,
                  "policy field 'protect': what it names lies behind more than " + std::to_string(kMaxMounts) + " directories");
    const Fd tree(::open_tree(point->get(), "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    mount_attr attributes{.attr_set = closed ? MOUNT_ATTR_RDONLY : 0U, .propagation = MS_PRIVATE};
    if (!tree || ::mount_setattr(tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) != 0 ||
        ::move_mount(tree.get(), "", point->get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
      return sys_error("mount " + quote(path) + " on itself");
    (closed ? closed_ : held_).insert(path);
    return {};
  }

  int root_;
  std::set<std::string> held_, closed_;
};

// Again until nothing is left to do: what another session moves about or links meanwhile is met the next time.
Status close_all(Walk& walk, Mounts& mounts) {
  for (int looks = 0; looks < kLooks; ++looks) {
    TRY(walk.look());
    // What was closed before a directory above it was back where it belongs is held only now.
    const std::size_t before = mounts.held().size() + mounts.closed().size();
    const std::set<std::string> closed = mounts.closed();
    for (const auto* paths : {&walk.open(), &walk.named(), &closed})
      for (const std::string& path : *paths) TRY(mounts.close(path));
    if (walk.open().empty() && !walk.learnt() && mounts.held().size() + mounts.closed().size() == before) return {};
  }
  return fail(Code::limit, "policy field 'protect': what it names changes faster than it can be protected");
}

Status enter() {
  const Fd user(::ioctl(kMountNs, NS_GET_USERNS));
  if (!user) return sys_error("the user namespace around the mount namespace");
  if (::setns(user.get(), CLONE_NEWUSER) != 0 || ::setns(kMountNs, CLONE_NEWNS) != 0) return sys_error("enter the mounts");
  if (!confine::become_inner()) return sys_error("become the workspace's user");
  return {};
}

Status run(bool ended, std::string& out) {
  TRY_ASSIGN(Notes notes, read_notes());
  if (ended) TRY(enter());
  else init::fill_home(notes.home.c_str());  // before its names are protected: what it gets is not news at the end
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return sys_error("prctl");  // a change of uid clears it
  TRY_ASSIGN(const Fd root, sys::open("/", O_PATH | O_DIRECTORY));
  Walk walk(root.get(), std::move(notes.names), std::move(notes.places), std::move(notes.others));
  if (ended) {
    (void)::setpriority(PRIO_PROCESS, 0, 19);  // in nobody's cgroup any more, and nobody waits
    TRY(walk.look());
    std::size_t count = 0;
    for (const std::string& path : walk.named())
      if (!notes.known.contains(path) && ++count <= kMaxNew && out.size() + path.size() < kMaxNewBytes) note(out, '+', path);
    note(out, '#', std::to_string(count));
    return {};
  }
  Mounts mounts(root.get());
  TRY(close_all(walk, mounts));
  std::size_t told = 0;
  for (const std::string& path : walk.named()) {
    note(out, 'k', path);
    if ((told += path.size()) <= kMaxTold) note(out, 't', path);
  }
  for (const std::string& path : mounts.held()) note(out, 'm', path);
  for (const std::string& path : mounts.closed()) note(out, 'r', path);
  return {};
}

}  // namespace
}  // namespace caisson::protect

int main(int argc, char** argv) {
  using namespace caisson;
  std::string out;
  auto done = argc == 2 ? protect::run(argv[1] == std::string_view("ended"), out)
                        : Status(fail(Code::invalid_argument, "usage: caisson-protect session|ended"));
  if (done && out.size() > protect::kMaxAnswer)
    done = fail(Code::limit, "policy field 'protect': its paths are too long to be told");
  if (!done) protect::note(out = {}, 'e', done.error().text().substr(0, 1000));
  protect::note(out, '.');
  return ::lseek(protect::kNotes, 0, SEEK_END) >= 0 && sys::write_all(protect::kNotes, out) && done ? 0 : 1;
}
