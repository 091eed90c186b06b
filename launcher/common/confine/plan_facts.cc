// What follows from a plan.
#include <nlohmann/json.hpp>

#include "launcher/common/confine/plan.h"
#include "launcher/common/policy/text_checks.h"

namespace caisson::confine {

const Bind* governing(const Plan& plan, std::string_view path) {
  const Bind* found = nullptr;
  for (const Bind& bind : plan.binds)
    if (policy::inside(path, bind.target) && (found == nullptr || bind.target.size() > found->target.size())) found = &bind;
  // A private home or /tmp lies over what is granted around it.
  for (const std::string_view own : {std::string_view(plan.policy->home_path), std::string_view("/tmp")})
    if (found != nullptr && policy::inside(path, own) && found->target.size() < own.size()) found = nullptr;
  return found;
}

std::string protect_notes(const Plan& plan) {
  const policy::Policy& policy = *plan.policy;
  std::string out;
  if (!plan.mount_ns || policy.protect.empty()) return out;
  const auto note = [&out](char letter, const std::string& text) { (out += letter) += text + '\0'; };
  const char home = policy.protect_home ? 'p' : 'l';
  note('h', policy.home_path);
  for (const std::string& name : policy.protect) note('n', name);
  for (const Bind& b : plan.binds) {
    if (b.device || b.held) continue;
    note('s', b.target);
    if (b.read_only) continue;
    note(b.target == policy.home_path ? home : b.staged ? 'l' : 'p', b.target);
    note('=', b.source);
  }
  if (policy.home == policy::Scope::private_) note('s', policy.home_path), note(home, policy.home_path);
  return out;
}

std::string tmp_options(const policy::Limits& limits) {
  return "size=" + std::to_string(limits.tmp_bytes) + ",nr_inodes=" + std::to_string(limits.tmp_inodes);
}

nlohmann::json residual_json(const Plan& plan) {
  nlohmann::json out = nlohmann::json::array();
  for (const Residual& r : plan.residual) out.push_back({{"id", r.id}, {"what", r.what}});
  return out;
}

std::set<Mechanism> enforced_mechanisms(const Plan& plan) {
  std::set<Mechanism> enforced;
  for (int m = 0; m < kMechanismCount; ++m)
    if (plan.mechanisms[m].state == MechanismState::enforced) enforced.insert(static_cast<Mechanism>(m));
  return enforced;
}

}  // namespace caisson::confine
