#include "launcher/session/policies.h"

#include "launcher/confine/ask.h"
#include "launcher/policy/frozen.h"

namespace caisson::session {
namespace {

constexpr int kDeadlineMs = 5'000;  // it takes some 20, and nobody else is served meanwhile

Result<policy::LoadResult> run_reader(const std::string& directory, const std::string& preset) {
  TRY_ASSIGN(const std::string bytes, confine::ask({.program = "caisson-policies",
                                                    .arguments = {directory, preset},
                                                    .request = {},
                                                    .most = policy::kMaxFrozen,
                                                    .deadline_ms = kDeadlineMs}));
  return policy::thaw(bytes);
}

}  // namespace

policy::LoadResult read_policies(const std::string& directory, const std::string& preset) {
  auto read = run_reader(directory, preset);
  if (read) return std::move(*read);
  policy::LoadResult none;
  none.problems.push_back({directory, 0, "", "cannot be read: caisson-policies: " + read.error().text(), ""});
  return none;
}

}  // namespace caisson::session
