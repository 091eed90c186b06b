// What a builder child does when the launcher is gone.
#include "launcher/confine/session_builder.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>

#include "launcher/base/sys.h"

namespace caisson::confine {
namespace {

// In the place of a launcher: begins a workspace and ends while the child waits for its id maps.
[[noreturn]] void begin_workspace_and_end(const std::string& run_dir) {
  auto loop = Loop::create({SIGTERM});
  auto builder = Builder::open("/proc/self/exe", run_dir);
  if (!loop || !builder) ::_exit(1);
  Plan plan;
  plan.user_ns = true;
  const auto making = builder->make_workspace(**loop, plan, ::geteuid(), ::getegid());
  ::_exit(making.done() ? 2 : 0);
}

// The child has all that the launcher had open, the sockets of its sessions too: these would not end before it does.
TEST(BuilderChild, EndsWithALauncherThatItWaitsFor) {
  std::string run_dir = std::filesystem::temp_directory_path() / "caisson-build-XXXXXX";
  ASSERT_NE(::mkdtemp(run_dir.data()), nullptr);
  auto open = sys::pipe();
  ASSERT_TRUE(open);
  const pid_t launcher = ::fork();
  ASSERT_GE(launcher, 0);
  if (launcher == 0) begin_workspace_and_end(run_dir);
  open->second.reset();
  EXPECT_EQ(sys::reap(launcher), 0);
  pollfd hung_up{.fd = open->first.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&hung_up, 1, 5000), 1) << "a process still has open what the launcher had open";
  std::filesystem::remove_all(run_dir);
}

}  // namespace
}  // namespace caisson::confine
