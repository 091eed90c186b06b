// The launcher's side of caisson-homes, which does on disks what workspaces need: it may take as long as a tenant or a disk
// likes, and the loop must not wait for it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/base/loop.h"

namespace caisson::session {

class Homes {
 public:
  // Takes the directory `path` for this launcher alone (empty: there is none); `state` is where uids are kept, too. Errors: one
  // that others than we can write to or see into, or that is in use.
  [[nodiscard]] static Result<Homes> open(const std::string& path, const std::string& state);
  [[nodiscard]] std::string path(const std::string& workspace) const { return path_ + "/" + workspace + "/home"; }
  using Done = std::function<void(Result<json::Value>)>;
  // Starts it with these arguments, and with another directory, where one is given; `done` gets its answer, from the loop.
  void run(Loop& loop, std::vector<std::string> arguments, Done done, int directory = -1) const;

 private:
  Homes(std::string path, Fd dir, Fd state) : path_(std::move(path)), dir_(std::move(dir)), state_(std::move(state)) {}
  std::string path_;
  Fd dir_, state_;
};

}  // namespace caisson::session
