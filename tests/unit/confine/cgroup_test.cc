// The disks under filesystems, by this machine's own /sys.
#include "launcher/common/confine/cgroup.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace caisson::confine {
namespace {

TEST(Disks, MemoryHasNone) {
  const auto disks = disks_of({"/proc"});
  ASSERT_FALSE(disks);
  EXPECT_EQ(disks.error().code, Code::unavailable);
  EXPECT_NE(disks.error().what.find("'/proc' is on a filesystem without a disk of its own"), std::string::npos);
}

TEST(Disks, AreWholeOnesAndEachOnce) {
  const auto disks = disks_of({CAISSON_SOURCE_DIR, CAISSON_SOURCE_DIR "/tests"});
  if (!disks) GTEST_SKIP() << disks.error().text();
  ASSERT_EQ(disks->size(), 1U);
  const std::string block = "/sys/dev/block/" + disks->front();
  EXPECT_EQ(::access((block + "/queue").c_str(), F_OK), 0) << "a partition has no queue: " << block;
}

}  // namespace
}  // namespace caisson::confine
