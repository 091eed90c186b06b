#include "launcher/common/base/session_id.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(SessionId, IsToldFromAnyOtherName) {
  EXPECT_EQ(session_id(0x6742f0aa00c0ffee), "s-6742f0aa00c0ffee");
  EXPECT_EQ(session_number("s-6742f0aa00c0ffee"), 0x6742f0aa00c0ffee);
  for (const char* name :
       {"", "s-", "launcher", "s-6742f0aa00c0ffe", "s-6742f0aa00c0ffee0", "s-6742F0AA00C0FFEE", "s-+742f0aa00c0ffee",
        "s-6742f0aa00c0ff..", "S-6742f0aa00c0ffee", "s-0000000000000000", "s-6742f0aa00c0ffee-000001"})
    EXPECT_EQ(session_number(name), 0) << name;
}

}  // namespace
}  // namespace caisson
