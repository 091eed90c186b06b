// What caisson-policies answers the launcher with, other than filters (filter.h).
#include "launcher/common/base/hash.h"
#include "launcher/common/capture/capture.h"
#include "launcher/common/confine/frozen_plan.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/narrow.h"
#include "launcher/compiler/planner.h"
#include "launcher/compiler/secrets.h"

namespace caisson::confine {
namespace {

using policy::Policy;

template <class Value>
using Made = Result<std::shared_ptr<const Value>>;

template <class Value>
void add(Answer<Value>& answer, Made<Value> made) {
  if (made) answer.answers.push_back({.error = {}, .value = std::move(*made)});
  else answer.answers.push_back({made.error().code, made.error().text(), nullptr});
}
// A malformed request gets no answers; the launcher notices that they are missing.
template <class Value>
std::string bytes_of(const Answer<Value>& answer) {
  policy::Writer writer;
  writer(answer);
  return std::move(writer.bytes);
}
template <class Question>
bool read(std::string_view request, Question& question) {
  policy::Reader reader(request);
  reader(question);
  return reader.whole() && question.mark == policy::frozen_mark();
}

// Where nothing can be mounted a workspace's home is not where the policy has it, and /tmp is not for its temporary files.
void move_home(Policy& policy, const std::string& home) {
  for (auto& [name, value] : policy.env.set)
    for (auto at = value.find(policy.home_path); at != std::string::npos; at = value.find(policy.home_path, at + home.size()))
      value.replace(at, policy.home_path.size(), home);
  policy.home_path = home;
  for (const char* name : {"TMPDIR", "TMP", "TEMP"}) policy.env.set[name] = home + "/.tmp";
}

// Names are asked for by TCP, by whichever server: the door answers. The proxy is for programs that ask by UDP alone. Without a
// search list: see kResolver.
void set_way_out(Policy& policy) {
  const std::string proxy = "http://127.0.0.1:" + std::to_string(capture::kDoorPort);
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
    policy.env.set.emplace(name, proxy);
  policy.env.set.emplace("RES_OPTIONS", "use-vc ndots:1");
  policy.env.set.emplace("LOCALDOMAIN", ".");
  policy::trust_in_place(policy);
}

Made<Plan> plan(const PlanRequest& request, const Features& features) {
  if (!request.policy) return fail(Code::protocol, "a request has no policy");
  auto in_force = std::make_shared<Policy>(*request.policy);
  std::string canonical = json::dump(policy::to_json(*in_force));
  const std::string digest = sha256_hex(canonical);
  if (in_force->digest.empty()) in_force->digest = digest;
  if (in_force->digest != digest)
    return fail(Code::protocol, "policy " + quote(in_force->domain, 64) + " is not what its digest says");
  if (!request.home.empty()) {
    move_home(*in_force, request.home);
    canonical = json::dump(policy::to_json(*in_force));
  }
  TRY_ASSIGN(Plan made, plan_of(in_force, features, request.sources, request.place));
  if (made.connected) set_way_out(*in_force);
  // Where nothing can be mounted, what no policy grants is there and refused: git ends if it cannot read the system's
  // /etc/gitconfig.
  if (!made.mount_ns) in_force->env.set.emplace("GIT_CONFIG_NOSYSTEM", "1");
  if (made.connected || !made.mount_ns) canonical = json::dump(policy::to_json(*in_force));
  made.canonical = std::move(canonical);
  return std::make_shared<const Plan>(std::move(made));
}

Made<Policy> narrowed(const NarrowQuestion& question) {
  if (!question.policy) return fail(Code::protocol, "the request has no policy");
  TRY_ASSIGN(const json::Value asked, json::parse(question.asked));
  TRY_ASSIGN(policy::Narrowing by, policy::parse_narrowing(asked));
  // No copy of the system, either: that is its workspace's, and one of its own would take memory and the launcher's time.
  if (question.alone) by.home_private = by.tmp_private = by.system_none = true;
  return policy::narrow(question.policy, by);
}

}  // namespace

std::string answer_plans(std::string_view request) {
  PlanQuestion question;
  Answer<Plan> answer{policy::frozen_mark(), {}};
  if (read(request, question))
    for (const PlanRequest& one : question.requests) add(answer, plan(one, question.features));
  return bytes_of(answer);
}

std::string answer_narrowing(std::string_view request) {
  NarrowQuestion question;
  Answer<Policy> answer{policy::frozen_mark(), {}};
  if (read(request, question)) add(answer, narrowed(question));
  return bytes_of(answer);
}

}  // namespace caisson::confine
