// Programs of ours that do what PID 1 shall not do itself, each for one question: asked, waited for, gone.
#pragma once

#include <string>
#include <vector>

#include "launcher/common/base/task.h"
#include "launcher/common/confine/features.h"
#include "launcher/common/confine/plan.h"
#include "launcher/common/confine/seccomp.h"

namespace caisson::confine {

struct Question {
  const char* program;                 // beside our own executable
  std::vector<std::string> arguments;  // without its name
  std::string request;                 // what it reads on descriptor 0
  int fd3 = -1;                        // its descriptor 3; -1: /dev/null
  std::size_t most;                    // bytes that it may answer on descriptor 1
  int deadline_ms;                     // it is killed then
};

// The answer is taken only when the program has ended, and ended with status 0: an incomplete answer is refused. Errors: timeout,
// io for another end, which is also that of one that has more to say: its answer does not grow.
[[nodiscard]] Task<Result<std::string>> ask(Loop& loop, Question question);
// What caisson-probe finds. Errors: that it gave no whole answer; nothing is known then, and nothing can be started.
[[nodiscard]] Task<Result<Features>> ask_features(Loop& loop);

// A request for one plan. The policy in the answer is in force: it has the home, and a digest where this one lacks it.
struct PlanRequest {
  std::shared_ptr<const policy::Policy> policy;
  std::string home;  // where nothing can be mounted: where its sessions see their home; "": where the policy has it
  Sources sources;
  Place place;
};
// What caisson-policies plans, one for each request. Each error is planner.h's. What the launcher knows itself of a plan, such as
// the identity of what it opened, is not taken from the answer.
using Plans = std::vector<Result<std::shared_ptr<const Plan>>>;
[[nodiscard]] Task<Result<Plans>> ask_plans(Loop& loop, const Features& features, std::vector<PlanRequest> requests);
// The policy narrowed as a request asks, whose JSON comes from the agent. This answer is NOT trusted: hostile text was read for
// it. subset.h checks it. It has no digest.
[[nodiscard]] Task<Result<std::shared_ptr<const policy::Policy>>> ask_narrowed(Loop& loop,
                                                                               std::shared_ptr<const policy::Policy> policy,
                                                                               std::string asked, bool alone);
// One run of caisson-policies. After a failure nothing is asked for three times as long as it took: a helper that hangs is not
// started again and again.
[[nodiscard]] Task<Result<std::string>> ask_compiler(Loop& loop, const char* mode, std::string request, std::size_t most);

// The sets that apply in this plan, compiled by caisson-policies: some milliseconds, where such a one was not asked for before.
// A policy of thaw() alone has what it takes.
[[nodiscard]] Task<Result<Filter>> ask_filter(Loop& loop, const Plan& plan);
// Its two halves: what it sends, and what the answer says (answer_filter in filter.h).
[[nodiscard]] std::string filter_request(const Plan& plan);
[[nodiscard]] Result<Filter> read_filter(std::string_view answer);

}  // namespace caisson::confine
