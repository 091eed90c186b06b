#include "launcher/pid1/session/policies.h"

#include "launcher/common/confine/query.h"
#include "launcher/common/policy/frozen.h"
#include "launcher/pid1/session/settings.h"

namespace caisson::session {

Task<policy::LoadResult> read_policies(Loop& loop, const Settings& s) {
  confine::Question question{.program = "caisson-policies",
                             .arguments = {s.policy_dir, s.preset, s.mounts, s.policy_dir, s.home, s.audit_dir, s.run_dir},
                             .request = s.mount_table,
                             .most = policy::kMaxFrozen,
                             .deadline_ms = 30'000};  // it takes some 20; on a busy host that is emulated, seconds
  question.arguments.insert(question.arguments.end(), {s.homes, s.attest_key, s.tools});
  const auto bytes = co_await confine::ask(loop, std::move(question));
  auto read = bytes ? policy::thaw(*bytes) : std::unexpected(bytes.error());
  if (read) co_return std::move(*read);
  policy::LoadResult none;
  none.problems.push_back({s.policy_dir, 0, "", "cannot be read: caisson-policies: " + read.error().text(), ""});
  co_return none;
}

}  // namespace caisson::session
