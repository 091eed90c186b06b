// What a session sees, by name.
#include "launcher/auditor/view.h"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace caisson::auditor {
namespace {

View some_view() {
  std::string text;
  for (const char* part : {"x",        "/usr",         "wx", "/home/gem",   "h",       "/usr/lib/caisson",
                           "l",        "/proc",        "",   "/etc/passwd", "w",       "/srv/data",
                           "",         "/srv/data/ro", "=",  "/bin",        "usr/bin", "=",
                           "/var/tmp", "../tmp",       "=",  "/loop",       "/loop",   "w",
                           "/tmp"})
    text.append(part).append(1, '\0');
  return View::parse(text);
}

std::string judged(Want want, const std::string& path, const std::string& base = "/") {
  const View view = some_view();
  const Denied* denied = view.judge(want, view.normal(path, base));
  return denied == nullptr ? "" : denied->error;
}

TEST(View, WhatNoGrantCoversIsNotThere) {
  EXPECT_EQ(judged(Want::look, "/etc/shadow"), "ENOENT");
  EXPECT_EQ(judged(Want::change, "/root/x"), "ENOENT");
  EXPECT_EQ(judged(Want::execute, "/opt/x"), "ENOENT");
  EXPECT_EQ(judged(Want::look, "/usrx"), "ENOENT") << "a name that begins alike is another name";
}

TEST(View, WhatIsGrantedIsNotRefused) {
  EXPECT_EQ(judged(Want::look, "/usr/bin/env"), "");
  EXPECT_EQ(judged(Want::execute, "/usr/bin/env"), "");
  EXPECT_EQ(judged(Want::create, "/home/gem/a/b"), "");
  EXPECT_EQ(judged(Want::look, "/etc/passwd"), "");
  EXPECT_EQ(judged(Want::connect, "/tmp/socket"), "");
}

TEST(View, DirectoriesAboveAGrantAreThereAndEmpty) {
  for (const char* path : {"/", "/home", "/etc", "/srv"}) EXPECT_EQ(judged(Want::look, path), "") << path;
  EXPECT_EQ(judged(Want::create, "/etc/made"), "EROFS");
  EXPECT_EQ(judged(Want::create, "/made"), "EROFS");
  EXPECT_EQ(judged(Want::create, "/root/made"), "ENOENT") << "where no directory is nothing can be made";
  EXPECT_EQ(judged(Want::create, "/home"), "") << "it is there already";
}

TEST(View, TheLongestPathRules) {
  EXPECT_EQ(judged(Want::create, "/srv/data/x"), "");
  EXPECT_EQ(judged(Want::create, "/srv/data/ro/x"), "EROFS");
  EXPECT_EQ(judged(Want::remove, "/usr/bin/env"), "EROFS");
  EXPECT_EQ(judged(Want::execute, "/srv/data/program"), "EACCES");
  EXPECT_EQ(judged(Want::change, "/proc/self/uid_map"), "EACCES");
  EXPECT_EQ(judged(Want::look, "/usr/lib/caisson/caisson-init"), "EACCES");
  EXPECT_EQ(judged(Want::look, "/usr/lib/caisson"), "") << "that it is there can be seen";
}

TEST(View, PathsAreResolvedByName) {
  const View view = some_view();
  EXPECT_EQ(view.normal("a/./b//c/", "/home/gem"), "/home/gem/a/b/c");
  EXPECT_EQ(view.normal("../../../..", "/home/gem"), "/");
  EXPECT_EQ(view.normal("/bin/sh", "/"), "/usr/bin/sh");
  EXPECT_EQ(view.normal("/bin/../x", "/"), "/usr/x") << "the policy's link is followed, as the kernel does";
  EXPECT_EQ(view.normal("/var/tmp/x", "/"), "/tmp/x");
  EXPECT_EQ(view.normal("/loop/x", "/"), "/loop/x") << "a link to itself ends";
  EXPECT_EQ(view.normal("", "/usr"), "/usr");
}

TEST(View, WhatIsCutShortIsLeftOut) {
  EXPECT_EQ(View::parse(std::string_view("w\0/srv", 6)).judge(Want::look, "/srv")->error, std::string("ENOENT"));
  EXPECT_EQ(View::parse("").judge(Want::look, "/x")->error, std::string("ENOENT"));
}

TEST(View, FlagsSayWhatIsWanted) {
  EXPECT_EQ(wanted(Want::open, O_RDONLY | O_CLOEXEC), Want::look);
  EXPECT_EQ(wanted(Want::open, O_RDWR), Want::change);
  EXPECT_EQ(wanted(Want::open, O_RDONLY | O_TRUNC), Want::change);
  EXPECT_EQ(wanted(Want::open, O_WRONLY | O_CREAT), Want::create);
  EXPECT_EQ(wanted(Want::open, O_TMPFILE | O_RDWR), Want::create);
  EXPECT_EQ(wanted(Want::open, O_PATH | O_RDWR), Want::look);
  EXPECT_EQ(wanted(Want::access, R_OK | X_OK), Want::look);
  EXPECT_EQ(wanted(Want::access, W_OK), Want::change);
  EXPECT_EQ(wanted(Want::remove, ~0ULL), Want::remove);
}

}  // namespace
}  // namespace caisson::auditor
