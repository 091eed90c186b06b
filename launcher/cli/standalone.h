// One session built in one go, without a launcher: what `caisson run` and `caisson policy test` run in. The same policy, plan and
// children as the launcher's sessions, but no cgroup, and nothing shared with another session.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/frozen.h"
#include "launcher/cli/standalone_child.h"
#include "launcher/common/confine/features.h"
#include "launcher/common/confine/verify.h"
#include "launcher/compiler/load.h"

namespace caisson::cli {

// A living one. It ends with this object.
struct Single {
  std::shared_ptr<const confine::Plan> plan;
  confine::Program seccomp;
  bool kept = false;  // the filter is of an earlier run
  confine::Standalone started;
  std::vector<confine::StepRecord> steps;
  confine::Protection protection;
  confine::Verified verified;
  Single() = default;
  Single(const Single&) = delete;
  Single& operator=(const Single&) = delete;
  ~Single();
};

struct SingleSession {
  std::string policies;
  policy::Choice choice;
  std::optional<Frozen> frozen;                  // where it is, `loaded` is its policy, without the rules
  std::shared_ptr<const policy::Policy> loaded;  // as the files say
  std::shared_ptr<const policy::Policy> policy;  // as the session shall have it
  std::string init_path;                         // its first process

  // Errors: invalid_argument with all problems of the policies; not_found.
  [[nodiscard]] static Result<SingleSession> load(const std::string& policies, const policy::Choice& choice);
  // Built and verified. First as if everything worked; when a step says otherwise, once more from what is found to work.
  [[nodiscard]] Result<std::unique_ptr<Single>> build() const;

 private:
  [[nodiscard]] Result<std::unique_ptr<Single>> build(confine::Features features) const;
  [[nodiscard]] Result<confine::Program> filter(const confine::Plan& plan, bool& was_kept) const;
};

}  // namespace caisson::cli
