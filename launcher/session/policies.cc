#include "launcher/session/policies.h"

#include "launcher/confine/ask.h"
#include "launcher/policy/frozen.h"

namespace caisson::session {
namespace {

constexpr int kDeadlineMs = 5'000;  // it takes some 20

Task<Result<policy::LoadResult>> run_reader(Loop& loop, const std::string& directory, const std::string& preset) {
  confine::Question question{.program = "caisson-policies",
                             .arguments = {directory, preset},
                             .request = {},
                             .most = policy::kMaxFrozen,
                             .deadline_ms = kDeadlineMs};
  CO_TRY_ASSIGN(const std::string bytes, co_await confine::ask(loop, std::move(question)));
  co_return policy::thaw(bytes);
}

}  // namespace

Task<policy::LoadResult> read_policies(Loop& loop, std::string directory, std::string preset) {
  auto read = co_await run_reader(loop, directory, preset);
  if (read) co_return std::move(*read);
  policy::LoadResult none;
  none.problems.push_back({directory, 0, "", "cannot be read: caisson-policies: " + read.error().text(), ""});
  co_return none;
}

}  // namespace caisson::session
