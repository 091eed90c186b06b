// caisson-builder: makes the processes that become sessions. The launcher starts one outside of all user namespaces; that one
// makes another for each workspace, which stays in the workspace's user namespace: a child that is cloned there has its
// namespaces from the start, and the memory that is copied for it is some pages. Whatever a builder makes is its parent's child
// (CLONE_PARENT), so that the launcher waits for it; the builder itself waits for nothing but its next request and ends with its
// socket.
//
// It is trusted as the launcher is, whose orders it carries out; no session can name it (its own namespaces; another uid). It
// reads nothing that a session wrote.
//
// usage: caisson-builder INIT STAGE HOME ROOT, with its socket as descriptor 3
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "launcher/builder/connect.h"
#include "launcher/builder/connector.h"
#include "launcher/builder/plan_decoder.h"
#include "launcher/common/build/child.h"
#include "launcher/common/kernel/caps.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/wire/builder_protocol.h"

namespace caisson::builder {
namespace {

using confine::ChildArgs;
using confine::StepWriter;

constexpr int kControl = 3;
constexpr std::size_t kMostPlan = 16U << 20;

struct Paths {
  const char *stage = "", *home = "", *root = "";
  int init = -1, null = -1, connector = -1;
};

// A request with its descriptors, which are closed with it. 0 to 2 are open, so that none of these is one of them.
struct Ordered {
  Request request{};
  int fds[kCarried];
  Ordered() {
    for (int& fd : fds) fd = -1;
  }
  ~Ordered() {
    for (const int fd : fds)
      if (fd >= 0) ::close(fd);
  }
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;
  [[nodiscard]] int operator[](Carried which) const { return fds[static_cast<std::size_t>(which)]; }
  int take(Carried which) {
    const int fd = (*this)[which];
    fds[static_cast<std::size_t>(which)] = -1;
    return fd;
  }
};

// False at the end of the socket. What is malformed ends the builder: the launcher does not send it.
bool receive(int control, Ordered& out) {
  scm::Received came;
  do came = scm::receive(control, &out.request, sizeof out.request);
  while (came.size < 0 && errno == EINTR);
  if (came.size == 0) return false;
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < kCarried && next < came.count; ++i)
    if ((out.request.carried >> i & 1) != 0) out.fds[i] = came.fds[next++];
  if (came.size != static_cast<ssize_t>(sizeof out.request) || came.cut() || next != came.count ||
      static_cast<std::size_t>(__builtin_popcount(out.request.carried)) != came.count)
    ::_exit(1);
  return true;
}

// The plan that was read last: a template's, which serves many sessions.
class Plans {
 public:
  const BuildPlan* read(const Ordered& order) {
    if (order.request.plan_number == number_) return &plan_;
    number_ = 0;
    if (memory_ != nullptr) ::munmap(memory_, mapped_);
    memory_ = nullptr;
    struct stat st{};
    const int fd = order[Carried::plan];
    if (::fstat(fd, &st) != 0) return nullptr;
    const auto size = static_cast<std::size_t>(st.st_size);
    if (size > kMostPlan) return errno = EFBIG, nullptr;
    mapped_ = (size + 8) * (1 + Decoder::kRoom);
    void* memory = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    memory_ = static_cast<char*>(memory);
    if (::pread(fd, memory_, size, 0) != static_cast<ssize_t>(size)) return errno = EIO, nullptr;
    plan_ = {};
    Decoder decoder(memory_, size, memory_ + (size + 8) / 8 * 8);
    members(decoder, plan_);
    if (!decoder.ok()) return errno = EBADMSG, nullptr;
    number_ = order.request.plan_number;
    return &plan_;
  }

 private:
  std::uint64_t number_ = 0;  // 0: none
  char* memory_ = nullptr;
  std::size_t mapped_ = 0;
  BuildPlan plan_;
};

void tell_child(int answer, pid_t pid, int pidfd) {
  const init::Reply reply{.type = init::Type::child, .pid = pid};
  (void)!scm::send(answer, &reply, sizeof reply, &pidfd, 1);
  ::close(pidfd);
}

// Lets a child wait until the launcher has been told of it: what it says itself then comes behind, and the launcher knows whose
// child it reaps. A word that builder and children share; mostly it is set before the child first runs.
class Announcements {
 public:
  [[nodiscard]] bool open() {
    void* page = ::mmap(nullptr, sizeof *told_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    told_ = page != MAP_FAILED ? static_cast<std::uint32_t*>(page) : nullptr;
    return told_ != nullptr;
  }
  void next() { ++made_; }
  void made() {
    __atomic_store_n(told_, made_, __ATOMIC_RELEASE);
    (void)::syscall(SYS_futex, told_, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
  // In the child. Not for ever: a builder that was killed tells nobody.
  void await() const {
    for (int seconds = 0; seconds < 10;) {
      const std::uint32_t told = __atomic_load_n(told_, __ATOMIC_ACQUIRE);
      if (static_cast<std::int32_t>(told - made_) >= 0) return;
      const timespec second{1, 0};
      if (::syscall(SYS_futex, told_, FUTEX_WAIT, told, &second, nullptr, 0) != 0 && errno == ETIMEDOUT) ++seconds;
    }
    ::_exit(1);
  }

 private:
  std::uint32_t* told_ = nullptr;
  std::uint32_t made_ = 0;  // in a child: its own number
};
Announcements announcements;

// Clones a child that runs `body`. A failure is told to the launcher as that of step `pid`.
template <class Body>
void make_child(const Ordered& order, unsigned long flags, Body body) {
  announcements.next();
  int pidfd = -1;
  const pid_t pid = raw::fork_into(&pidfd, order[Carried::cgroup], CLONE_PARENT | flags);
  if (pid == 0) {
    announcements.await();
    body();
  }
  if (pid > 0) {
    tell_child(order[Carried::answer], pid, pidfd);
    announcements.made();
    return;
  }
  const confine::Steps told{.records = {{confine::Step::pid, confine::kNoEntry, errno, 0, 0}}};
  (void)!scm::send(order[Carried::answer], &told, confine::Steps::size(1), nullptr, 0);
}

// -1: it is not there, and no session that needs it can be built.
int beside_us(const char* name) {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  if (size < 0 || static_cast<std::size_t>(size) >= sizeof path) return -1;
  path[size] = '\0';
  char* const own = std::strrchr(path, '/') + 1;
  if (std::strlen(name) >= static_cast<std::size_t>(path + sizeof path - own)) return -1;
  std::strcpy(own, name);
  return ::open(path, O_PATH | O_CLOEXEC);
}

[[noreturn]] void serve(int control, const Paths& paths);

void make_builder(Ordered& order, int control, const Paths& paths) {
  int pidfd = -1;
  const pid_t pid = raw::fork_into(&pidfd, -1, CLONE_PARENT);
  if (pid > 0) ::close(pidfd);
  if (pid != 0) return;  // where it failed, the launcher sees the end of the socket
  ::close(control);
  const int user_ns = order[Carried::user_ns];
  if (user_ns >= 0 && ::setns(user_ns, CLONE_NEWUSER) != 0) ::_exit(1);
  if (user_ns >= 0) ::close(order.take(Carried::user_ns));
  if (!announcements.open()) ::_exit(1);
  serve(order.take(Carried::control), paths);
}

// Of the builder itself, because a user namespace cannot be left again. What fails ends it, and its answer says why.
void make_workspace(const ChildArgs& args) {
  const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (self < 0) ::_exit(1);
  tell_child(args.answer, ::getpid(), self);
  StepWriter steps(args.answer);
  confine::enter_user_ns(args, steps);
  int pidfd = -1;
  const pid_t pid = raw::fork_into(&pidfd, -1, CLONE_PARENT);
  if (pid == 0) confine::workspace_child(args, steps);
  if (pid < 0) steps.failed(confine::Step::mount_ns, errno);
  ::close(pidfd);
}

void carry_out(Ordered& order, int control, const Paths& paths, Plans& plans) {
  if (order.request.op == Op::fork) return make_builder(order, control, paths);
  ChildArgs args{.plan = order.request.op == Op::connect ? nullptr : plans.read(order),
                 .stage_dir = paths.root,
                 .home_dir = paths.home,
                 .answer = order[Carried::answer],
                 .net_ns = order[Carried::net_ns],
                 .mount_ns = order[Carried::mount_ns],
                 .landlock = order[Carried::landlock],
                 .init_exe = paths.init,
                 .null = paths.null,
                 .protect = order[Carried::protect],
                 .notes = order[Carried::notes],
                 .uid = order.request.uid,
                 .gid = order.request.gid};
  if (order.request.op == Op::connect) return make_child(order, 0, [&] { confine::connect_child(args, order.request.port); });
  if (args.plan == nullptr) ::_exit(1);
  const unsigned long pid_ns = args.plan->pid_ns && !confine::faults::skip("pid_ns") ? CLONE_NEWPID : 0;
  switch (order.request.op) {
    case Op::workspace:
      args.stage_dir = paths.stage;
      return make_workspace(args);
    case Op::tree:
      return make_child(order, pid_ns, [&args] { confine::tree_child(args); });
    case Op::session:
      return make_child(order, pid_ns, [&] {
        if (args.plan->connected)
          args.connector = confine::fork_from_connector(args, order[Carried::line], order.request.whose, paths.connector);
        confine::session_child(args);
      });
    default:
      ::_exit(1);
  }
}

void serve(int control, const Paths& paths) {
  static Plans plans;
  for (;;) {
    Ordered order;
    if (!receive(control, order)) ::_exit(0);
    carry_out(order, control, paths, plans);
  }
}

}  // namespace
}  // namespace caisson::builder

int main(int argc, char** argv) {
  using namespace caisson;
  if (argc != 5) return 64;
  const builder::Paths paths{.stage = argv[2],
                             .home = argv[3],
                             .root = argv[4],
                             .init = ::open(argv[1], O_PATH | O_CLOEXEC),
                             .null = ::open("/dev/null", O_RDWR | O_CLOEXEC),
                             .connector = builder::beside_us("caisson-connector")};
  if (paths.init < 0 || paths.null < 0 || ::fcntl(builder::kControl, F_SETFD, FD_CLOEXEC) != 0) return 1;
  // In T1 sessions have our uid: nothing of us may be read or traced by them.
  if ((::geteuid() != 0 || !confine::caps_change_uid()) && ::prctl(PR_SET_DUMPABLE, 0) != 0) return 1;
  confine::caps_prepare();
  confine::prepare_for_children();
  if (!builder::announcements.open()) return 1;
  builder::serve(builder::kControl, paths);
}
