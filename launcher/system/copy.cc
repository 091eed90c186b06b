#include "launcher/system/copy.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "launcher/common/base/sys.h"
#include "launcher/common/tables/directory.h"

namespace caisson::system {
namespace {

constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
constexpr unsigned kMaxDepth = 100;
constexpr std::size_t kChunk = 1U << 20;
// Of packages nothing is set-user-ID here: nosuid would take it away in any case.
constexpr mode_t kModes = 0777;

// Closed to us, held by somebody's lease, another filesystem, or not what it was a moment ago.
bool left_out(const Error& error) {
  constexpr int kErrors[] = {EACCES, EPERM, EAGAIN, EXDEV, ENOENT, ENOTDIR, ELOOP};
  return std::ranges::find(kErrors, error.sys) != std::end(kErrors);
}

class Copier {
 public:
  explicit Copier(What what) : what_(what) {}

  Status entry(int from, int to, const char* name) {
    struct stat st{};
    if (::fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) return {};
    if (S_ISDIR(st.st_mode)) return directory(from, to, name, st.st_mode & kModes);
    if (what_ == What::directories) return {};
    if (S_ISLNK(st.st_mode)) return link(from, to, name);
    return S_ISREG(st.st_mode) ? file(from, to, name, st.st_mode & kModes) : Status();
  }

  Status below(Fd from, int to) {
    if (depth_ == kMaxDepth) return {};
    ++depth_;
    TRY_ASSIGN(const sys::Directory dir, sys::read_directory(std::move(from)));
    while (const char* name = sys::next_name(dir.get())) TRY(entry(::dirfd(dir.get()), to, name));
    TRY(sys::all_read());
    --depth_;
    return {};
  }

 private:
  // What was named may be a mount of its own, as grants are in containers; what lies below it may not.
  [[nodiscard]] std::uint64_t inside() const { return depth_ == 0 ? kInside & ~std::uint64_t{RESOLVE_NO_XDEV} : kInside; }

  // One that cannot be opened may still be listed in others, and cannot be written in: it is left out of the copy of /usr, too.
  Status directory(int from, int to, const char* name, mode_t mode) {
    auto source = sys::openat2(from, name, O_RDONLY | O_DIRECTORY, inside());
    if (!source && left_out(source.error())) return {};
    if (!source) return std::unexpected(std::move(source).error());
    if (::mkdirat(to, name, mode | S_IRWXU) != 0 && errno != EEXIST) return sys_error("mkdir " + quote(name));
    TRY_ASSIGN(const Fd target, sys::openat2(to, name, O_RDONLY | O_DIRECTORY, kInside));
    return below(std::move(*source), target.get());
  }

  static Status link(int from, int to, const char* name) {
    char target[PATH_MAX + 1] = "";
    if (::readlinkat(from, name, target, sizeof target - 1) < 0) return {};
    (void)::unlinkat(to, name, 0);
    if (::symlinkat(target, to, name) != 0) return sys_error("link " + quote(name));
    return {};
  }

  Status file(int from, int to, const char* name, mode_t mode) {
    const auto source = sys::openat2(from, name, O_RDONLY | O_NONBLOCK, inside());  // a pipe may have taken its place
    if (!source && left_out(source.error())) return {};
    if (!source) return std::unexpected(source.error());
    (void)::unlinkat(to, name, 0);
    const Fd target(::openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode | S_IRUSR | S_IWUSR));
    if (!target) return sys_error("create " + quote(name));
    ssize_t n = 0;
    while ((n = ::sendfile(target.get(), source->get(), nullptr, kChunk)) > 0) {
    }
    if (n < 0) return sys_error("copy " + quote(name));
    return {};
  }

  const What what_;
  unsigned depth_ = 0;
};

}  // namespace

Status copy(int from, int to, const std::string& name, What what) { return Copier(what).entry(from, to, name.c_str()); }

Status copy_below(int from, int to, What what) {
  TRY_ASSIGN(Fd again, sys::openat(from, ".", O_RDONLY | O_DIRECTORY));
  return Copier(what).below(std::move(again), to);
}

}  // namespace caisson::system
