// Files that stay open between two requests: uploads and downloads in parts. A number is never used twice.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "agent/worker/paths.h"

namespace caisson::worker {

struct Handle {
  std::mutex lock;  // parts of one file come one after the other
  Fd fd;
  std::string path;  // absolute; "": an upload whose path is not known yet
  std::int64_t size = 0;
  Fd directory;  // of a file that an upload has created, with its name there
  std::string name;
  struct stat st{};  // when it was opened
};

class Handles {
 public:
  static constexpr std::size_t kMost = 64;
  // EMFILE: too many are open.
  [[nodiscard]] Done<std::int64_t> keep(std::shared_ptr<Handle> handle);
  [[nodiscard]] Done<std::shared_ptr<Handle>> find(std::int64_t number);
  [[nodiscard]] Done<std::shared_ptr<Handle>> take(std::int64_t number);

 private:
  std::mutex lock_;
  std::map<std::int64_t, std::shared_ptr<Handle>> open_;
  std::int64_t next_ = 1;
};

}  // namespace caisson::worker
