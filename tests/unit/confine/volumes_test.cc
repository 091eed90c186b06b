// Which lines of a container's mountinfo are volumes of the operator's; that paths lead to them, tests/session/test_mounts.py
// shows.
#include "launcher/compiler/volumes.h"

#include <gtest/gtest.h>

#include <map>

namespace caisson::confine {
namespace {

// As Docker and podman mount, with `more` behind.
std::string table(const std::string& more) {
  return R"(700 600 0:100 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
701 700 0:101 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
702 700 0:102 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
703 700 0:103 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
704 700 8:1 /docker/hosts /etc/hosts rw,relatime - ext4 /dev/sda1 rw
705 700 8:1 /volumes/home /home/gem rw,relatime - ext4 /dev/sda1 rw
706 700 8:1 /volumes/logs /var/log/caisson rw,relatime - ext4 /dev/sda1 rw
)" + more;
}

std::map<std::string, std::string> found(const std::string& more, const std::string& places = "/mnt/*:/workspace",
                                         std::vector<std::string> own = {"/home/gem", "", "/etc/caisson/policies"}) {
  const auto listed = listed_volumes({.places = places, .own = std::move(own), .table = table(more)});
  std::map<std::string, std::string> out;
  if (!listed) return {{"error", listed.error().what}};
  for (const Volume& v : *listed) out[v.path] = std::to_string(v.id) + (v.read_only ? " ro" : " rw") + (v.execute ? " exec" : "");
  return out;
}
using Found = std::map<std::string, std::string>;

TEST(Volumes, WhatAnEngineMountsItselfIsNone) { EXPECT_EQ(found(""), Found()); }

TEST(Volumes, AreGrantedAsTheyAreMounted) {
  EXPECT_EQ(found("710 700 8:1 /a /mnt/user-data rw,relatime master:1 - ext4 /dev/sda1 rw\n"
                  "711 710 8:1 /b /mnt/user-data/skills ro,relatime - ext4 /dev/sda1 rw\n"
                  "712 700 0:110 / /mnt/t rw,nosuid,nodev,noexec - tmpfs tmpfs rw\n"
                  "713 700 0:111 / /mnt/nfs rw - nfs4 host:/x ro,vers=4.2\n"
                  "714 700 8:1 /c /workspace rw - ext4 /dev/sda1 rw\n"),
            Found({{"/mnt/user-data", "710 rw exec"},
                   {"/mnt/user-data/skills", "711 ro exec"},
                   {"/mnt/t", "712 rw"},
                   {"/mnt/nfs", "713 ro exec"},
                   {"/workspace", "714 rw exec"}}));
}

TEST(Volumes, AStarNamesWhatIsBelow) {
  const std::string mounts =
      "710 700 8:1 /a /mnt rw - ext4 /dev/sda1 rw\n711 710 8:1 /b /mnt/x rw - ext4 /dev/sda1 rw\n"
      "712 700 8:1 /c /mntx rw - ext4 /dev/sda1 rw\n";
  EXPECT_EQ(found(mounts), Found({{"/mnt/x", "711 rw exec"}}));
  EXPECT_EQ(found(mounts, "/mnt"), Found({{"/mnt", "710 rw exec"}, {"/mnt/x", "711 rw exec"}}));
  EXPECT_EQ(found(mounts, ""), Found());
}

TEST(Volumes, NothingOfTheImageOrTheKernelIsOne) {
  EXPECT_EQ(found("710 700 0:100 /srv /mnt/srv rw - overlay overlay rw,lowerdir=/l\n"
                  "711 700 0:101 / /mnt/proc rw - proc proc rw\n"
                  "712 700 0:120 / /mnt/cgroup rw - cgroup2 cgroup rw\n"
                  "713 700 0:121 / /mnt/dev rw - devtmpfs devtmpfs rw\n"),
            Found());
  EXPECT_EQ(found("710 700 0:130 / /mnt/layers rw - overlay overlay rw\n"), Found({{"/mnt/layers", "710 rw exec"}}))
      << "another overlay is a volume";
}

TEST(Volumes, NoneThatHoldsWhatIsTheLaunchersOrLiesInIt) {
  const std::string mounts =
      "710 700 8:1 /a /mnt/state rw - ext4 /dev/sda1 rw\n711 710 8:1 /b /mnt/state/audit/x rw - ext4 /dev/sda1 rw\n"
      "712 700 8:1 /c /mnt/statement rw - ext4 /dev/sda1 rw\n";
  EXPECT_EQ(found(mounts, "/mnt/*", {"/mnt/state/audit"}), Found({{"/mnt/statement", "712 rw exec"}}));
}

TEST(Volumes, NamesAreRead) {
  EXPECT_EQ(found("710 700 8:1 /a /mnt/two\\040words rw - ext4 /dev/sda1 rw\n"), Found({{"/mnt/two words", "710 rw exec"}}));
  EXPECT_EQ(found("710 700 8:1 /a /mnt/a\\012b rw - ext4 /dev/sda1 rw\n"), Found()) << "no grant may have such a path";
}

TEST(Volumes, BrokenLinesAreNone) {
  for (const char* line : {"710\n", "710 700 8:1 /a /mnt/x\n", "710 700 8:1 /a /mnt/x rw -\n", "\n\n", " /mnt/x"})
    EXPECT_EQ(found(line), Found()) << line;
}

TEST(Volumes, APlaceThatCouldShowTheContainersOwnIsRefused) {
  for (const char* place :
       {"mnt", "/", "/*", "/mnt/../etc", "/mnt/*/x", "/etc/*", "/usr/share", "/home/*", "/mnt/*:", "/mnt/*:/proc"})
    EXPECT_TRUE(found("", place).contains("error")) << place;
  EXPECT_EQ(
      found("", "/mnt/*:/run/x")["error"],
      "CAISSON_MOUNTS '/run/x': '/run' is the container's own: what is mounted there is granted by a policy, or not at all; it "
      "is a list such as /mnt/*:/workspace, or empty");
}

TEST(Volumes, ATableOfAnySizeIsReadInOnePass) {
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "710 700 8:1 /a /srv/" + std::to_string(i) + " rw - ext4 /dev/sda1 rw\n";
  EXPECT_EQ(found(many), Found());
}

}  // namespace
}  // namespace caisson::confine
