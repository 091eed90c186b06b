// Errors: codes, texts, macros, and quoting of untrusted text.
#include "launcher/common/base/result.h"

#include <gtest/gtest.h>

#include <set>

namespace caisson {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Code::invalid_argument, "odd");
  return n / 2;
}
Result<int> quarter(int n) {
  TRY_ASSIGN(const int h, half(n));
  TRY_ASSIGN(const int q, half(h));
  return q;
}
Status both(int a, int b) {
  TRY(half(a));
  TRY(half(b));
  return {};
}

TEST(Result, MacrosReturnTheFirstError) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().what, "odd");
  EXPECT_TRUE(both(2, 4));
  EXPECT_FALSE(both(2, 3));
}

TEST(Result, CodesHaveDistinctNamesAndExitStatuses) {
  std::set<std::string_view> names;
  std::set<int> statuses;
  for (int i = 0; i <= static_cast<int>(Code::internal); ++i) {
    names.insert(code_name(static_cast<Code>(i)));
    statuses.insert(code_exit_status(static_cast<Code>(i)));
  }
  EXPECT_EQ(names.size(), 10U);
  EXPECT_EQ(statuses.size(), 10U);
  EXPECT_FALSE(statuses.contains(0) || statuses.contains(1));
}

TEST(Result, ErrnoChoosesTheCodeAndTheText) {
  const Error error = sys_error("open 'x'", ENOENT).error();
  EXPECT_EQ(error.code, Code::not_found);
  EXPECT_EQ(error.sys, ENOENT);
  EXPECT_EQ(error.text(), "open 'x': ENOENT (No such file or directory)");
  EXPECT_EQ(sys_error("x", EROFS).error().code, Code::permission_denied);
  EXPECT_EQ(sys_error("x", ENOSYS).error().code, Code::unavailable);
  EXPECT_EQ(sys_error("x", ENOSPC).error().code, Code::limit);
  EXPECT_EQ(sys_error("x", ELOOP).error().code, Code::invalid_argument);
  EXPECT_EQ(sys_error("x", EIO).error().code, Code::io);
}

TEST(Result, WrapPutsContextInFront) { EXPECT_EQ(Error(Code::io, "read").wrap("load policy").what, "load policy: read"); }

TEST(Result, UnknownErrnosHaveANumber) {
  EXPECT_EQ(errno_name(EACCES), "EACCES");
  EXPECT_EQ(errno_name(4242), "errno 4242");
}

TEST(Quote, EscapesWhatCouldForgeALogLine) {
  EXPECT_EQ(quote("plain"), "'plain'");
  EXPECT_EQ(quote("a'b\\c"), "'a\\'b\\\\c'");
  EXPECT_EQ(quote(std::string_view("\n\r\x1b[31m\0\x7f\xff", 10)), "'\\x0a\\x0d\\x1b[31m\\x00\\x7f\\xff'");
  EXPECT_EQ(quote("\xff"), "'\\xff'");
  EXPECT_EQ(quote("abcdef", 3), "'abc...'");
  EXPECT_EQ(quote("abc", 3), "'abc'");
}

}  // namespace
}  // namespace caisson
