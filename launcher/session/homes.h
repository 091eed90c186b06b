// The launcher's side of caisson-homes, which does on disks what persistent workspaces need: it may take as long as a tenant
// likes, and the loop must not wait for it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/base/json.h"
#include "launcher/base/loop.h"

namespace caisson::session {

class Homes {
 public:
  // Takes the directory for this launcher alone. Errors: one that others than we can write to or see into, or that is in use.
  [[nodiscard]] static Result<Homes> open(const std::string& path);
  [[nodiscard]] std::string path(const std::string& workspace) const { return path_ + "/" + workspace + "/home"; }
  using Done = std::function<void(Result<json::Value>)>;
  // Starts it with these arguments; `done` gets its answer, from the loop.
  void run(Loop& loop, std::vector<std::string> arguments, Done done) const;

 private:
  Homes(std::string path, Fd dir) : path_(std::move(path)), dir_(std::move(dir)) {}
  std::string path_;
  Fd dir_;
};

}  // namespace caisson::session
