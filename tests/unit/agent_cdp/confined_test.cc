// The look at the renderers, on processes that the test makes.
#include "agent/cdp/confined.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/cdp/records.h"

namespace caisson::cdp {
namespace {

// sleep(1) under another name and with that argument, which it does not get to read before it is stopped.
class Child {
 public:
  explicit Child(const char* argument) : pid_(::fork()) {
    if (pid_ > 0) return;
    ::execl("/bin/sh", "sh", "-c", "exec 2>/dev/null; kill -STOP $$", argument, nullptr);
    ::_exit(127);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  void wait() const {
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(CdpConfined, ARendererWithoutNamespacesIsFound) {
  const Child child("--type=renderer");
  child.wait();
  EXPECT_TRUE(has_type(child.pid(), "renderer"));
  Watch watch(1);
  const auto found = watch.look(descendants(::getpid()), 0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pid, child.pid());
  EXPECT_EQ(found->why, "it has no PID namespace of its own");
  EXPECT_EQ(watch.renderers(), 1u);
}

TEST(CdpConfined, OtherProcessesAreNotJudged) {
  const Child child("--type=renderers"), other("x--type=renderer");
  child.wait();
  other.wait();
  EXPECT_FALSE(Watch(1).look(descendants(::getpid()), 0));
  EXPECT_EQ(descendants(::getpid()).size(), 2u);
}

TEST(CdpConfined, AZygoteThatIsGoneIsMissed) {
  Zygotes zygotes;
  const Child other("--type=gpu-process");
  other.wait();
  {
    const Child zygote("--type=zygote");
    zygote.wait();
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(zygotes.lost(::getpid(), descendants(::getpid()), false));
    EXPECT_FALSE(Zygotes().lost(zygote.pid(), descendants(::getpid()), false)) << "no child of that process";
  }
  EXPECT_TRUE(zygotes.lost(::getpid(), descendants(::getpid()), false));
  EXPECT_TRUE(Zygotes().lost(::getpid(), descendants(::getpid()), true)) << "none was ever seen";
  EXPECT_FALSE(zygotes.lost(::getpid(), descendants(::getpid()), false)) << "told once";
}

TEST(CdpConfined, FiltersAreAskedForOnceTheRendererHasHadTime) {
  const Watch watch(3);
  EXPECT_EQ(watch.judge({.pid_namespaces = 99, .filters = 3}, 0), "");
  EXPECT_EQ(watch.judge({.pid_namespaces = 99, .filters = 2}, Watch::kFilterWithinUs - 1), "");
  EXPECT_EQ(watch.judge({.pid_namespaces = 99, .filters = 2}, Watch::kFilterWithinUs),
            "it has 2 seccomp filters, and must have 3");
  EXPECT_NE(watch.judge({.pid_namespaces = 0, .filters = 3}, 0), "");
}

TEST(CdpConfined, WithoutANumberTwoFiltersAreTheLeast) {
  const Watch watch(0);
  EXPECT_NE(watch.judge({.pid_namespaces = 99, .filters = 1}, Watch::kFilterWithinUs), "");
}

std::vector<std::string> cut(const std::string& bytes, std::size_t step, std::size_t most) {
  Records records(most);
  std::vector<std::string> out;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    std::string_view part = std::string_view(bytes).substr(at, step);
    while (!part.empty()) {
      const Records::Got got = records.take(part);
      if (got == Records::Got::message) out.emplace_back(records.message().view());
      if (got == Records::Got::too_long) out.push_back("long " + records.head() + " " + records.tail());
    }
  }
  return out;
}

TEST(CdpRecords, HoweverBytesAreCutTheSameMessagesComeOut) {
  const std::string bytes = std::string("one") + '\0' + '\0' + std::string(20, 'x') + "end" + '\0' + "two" + '\0' + "rest";
  for (std::size_t step = 1; step < bytes.size(); ++step) {
    const auto messages = cut(bytes, step, 10);
    ASSERT_EQ(messages.size(), 4u) << step;
    EXPECT_EQ(messages[0], "one");
    EXPECT_EQ(messages[1], "");
    EXPECT_TRUE(messages[2].starts_with("long xxxx") && messages[2].ends_with("end")) << messages[2];
    EXPECT_EQ(messages[3], "two");
  }
}

}  // namespace
}  // namespace caisson::cdp
