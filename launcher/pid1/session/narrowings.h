// What requests narrow a domain to, in one workspace. Kept, because clients ask for the same again and again, and checked.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "launcher/common/base/task.h"
#include "launcher/common/confine/query.h"

namespace caisson::session {

class Narrowings {
 public:
  explicit Narrowings(std::shared_ptr<const confine::Plan> domain) : domain_(std::move(domain)) {}
  [[nodiscard]] const confine::Plan& domain() const { return *domain_; }

  // asked: a request's JSON. alone: for a session with namespaces of its own. Errors: the request's; permission_denied, where the
  // answer allows more than the domain.
  [[nodiscard]] Task<Result<std::shared_ptr<const policy::Policy>>> policy(Loop& loop, std::string asked, bool alone);
  // The plan of such a policy. Errors: as above, and planner.h's.
  [[nodiscard]] Task<Result<std::shared_ptr<const confine::Plan>>> plan(Loop& loop, const confine::Features& features,
                                                                        confine::PlanRequest request, std::string asked);

 private:
  const std::shared_ptr<const confine::Plan> domain_;
  std::map<std::string, std::shared_ptr<const policy::Policy>> policies_;
  std::map<std::string, std::shared_ptr<const confine::Plan>> plans_;
};

}  // namespace caisson::session
