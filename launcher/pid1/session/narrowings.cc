#include "launcher/pid1/session/narrowings.h"

#include "launcher/common/confine/frozen_plan.h"
#include "launcher/pid1/execute/subset.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMostKept = 16;

template <class Value>
std::shared_ptr<const Value> keep(std::map<std::string, std::shared_ptr<const Value>>& kept, std::string key,
                                  std::shared_ptr<const Value> value) {
  if (kept.size() >= kMostKept) kept.clear();
  return kept[std::move(key)] = std::move(value);
}

std::unexpected<Error> wider_answer(const std::string& field) {
  return fail(Code::permission_denied, "compiler's answer is wider than the domain: " + field);
}

}  // namespace

Task<Result<std::shared_ptr<const policy::Policy>>> Narrowings::policy(Loop& loop, std::string asked, bool alone) {
  std::string key = (alone ? "alone " : "") + asked;
  if (const auto known = policies_.find(key); known != policies_.end()) co_return known->second;
  CO_TRY_ASSIGN(auto narrowed, co_await confine::ask_narrowed(loop, domain_->policy, std::move(asked), alone));
  if (const auto field = confine::wider(*narrowed, *domain_->policy)) co_return wider_answer("policy" + *field);
  co_return keep(policies_, std::move(key), std::move(narrowed));
}

Task<Result<std::shared_ptr<const confine::Plan>>> Narrowings::plan(Loop& loop, const confine::Features& features,
                                                                    confine::PlanRequest request, std::string asked) {
  policy::Writer key;
  key(asked, request.sources, request.place);
  if (const auto known = plans_.find(key.bytes); known != plans_.end()) co_return known->second;
  std::vector<confine::PlanRequest> requests;
  requests.push_back(std::move(request));
  CO_TRY_ASSIGN(const confine::Plans plans, co_await confine::ask_plans(loop, features, std::move(requests)));
  if (!plans[0]) co_return std::unexpected(plans[0].error());
  auto plan = std::make_shared<confine::Plan>(**plans[0]);
  plan->claims = domain_->claims;  // its canary was of the domain's own plan
  if (const auto field = confine::wider(*plan, *domain_)) co_return wider_answer(*field);
  co_return keep<confine::Plan>(plans_, std::move(key.bytes), std::move(plan));
}

}  // namespace caisson::session
