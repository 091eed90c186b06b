// Finds what `protect` names in what a session can write to. Every name, depth and link there is a tenant's choice and may change
// meanwhile: no symbolic link is followed but those that lie where a protected name leads, by hand, and all is bounded.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::protect {

inline constexpr std::size_t kMaxEntries = 250'000, kMaxFound = 512, kMaxMounts = 1024, kMaxNamed = 128U << 10;
inline constexpr int kMaxDepth = 64;
inline constexpr std::int64_t kMaxSeconds = 6;  // before the launcher's patience with a session that is being built

struct Place {
  std::string path;  // as the session sees it, and where it is taken from: a name in either is one
  std::string source;
  bool names = true;  // false: looked through for second names of what is protected elsewhere only
};

class Walk {
 public:
  Walk(int root, std::vector<std::string> names, std::vector<Place> places, std::set<std::string> others)
      : root_(root), names_(std::move(names)), places_(std::move(places)), others_(std::move(others)) {}

  // One look at everything. Errors: limit, with a sentence, where a bound was reached; what the kernel says of a directory that
  // a session could go into and we cannot read.
  [[nodiscard]] Status look();

  // Of the last look: paths that can still be written to, parents first.
  [[nodiscard]] const std::set<std::string>& open() const { return open_; }
  // Of all looks: paths with a protected name, but not below another one.
  [[nodiscard]] const std::set<std::string>& named() const { return named_; }
  // Whether the last look found a file with several names that was not known before, or missed a directory that was moved:
  // another look may find these.
  [[nodiscard]] bool learnt() const { return learnt_; }

 private:
  struct At {
    std::string path, source;
    bool names, below;  // whether names count here; whether it is in something that is protected as a whole
    int depth = 0;
  };
  [[nodiscard]] Status directory(Fd fd, const At& at);
  [[nodiscard]] Status entry(int directory, const dirent& dirent, const At& at);
  [[nodiscard]] Status protect(int directory, const char* name, const std::string& path);
  [[nodiscard]] Status name(const std::string& path);
  [[nodiscard]] Result<bool> follow(const std::string& link);
  void learn(std::uint64_t device, std::uint64_t inode, std::uint64_t links);
  [[nodiscard]] Status follow_on(const At& link);
  [[nodiscard]] Status bounded() const;
  [[nodiscard]] bool matches(const std::string& path) const;
  [[nodiscard]] bool within(std::string path) const;

  int root_;
  std::vector<std::string> names_;
  std::vector<Place> places_;
  std::set<std::string> others_;  // places of the plan, each of which is looked at by itself or not at all
  std::set<std::string> open_, named_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> linked_;  // protected files that have other names: device and inode
  std::vector<std::string> targets_;                          // directories that links lead to, still to be looked into
  bool learnt_ = false;
  std::size_t entries_ = 0, named_bytes_ = 0;
  std::int64_t until_ = 0;
};

// Whether what the descriptor stands for can be written to by its mount.
[[nodiscard]] bool writable_mount(int fd);

}  // namespace caisson::protect
