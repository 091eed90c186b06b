#include <cstdlib>

#include "launcher/common/confine/cgroup.h"
#include "launcher/common/confine/frozen_features.h"
#include "launcher/common/confine/query.h"

namespace caisson::confine {

void ask_cgroup(Features& f) {
  const CgroupRoot::Found cgroup = CgroupRoot::look();
  f.cgroup = {cgroup.error, "cgroup v2"};
  f.cgroup_reason = cgroup.reason;
  f.io = {cgroup.io ? 0 : ENOTSUP, "the io controller is not delegated to us"};
}

Task<Result<Features>> ask_features(Loop& loop) {
  constexpr std::size_t kMost = 64 * 1024;
  constexpr int kDeadlineMs = 10'000;  // it takes some milliseconds
  Question question{.program = "caisson-probe", .arguments = {}, .request = {}, .most = kMost, .deadline_ms = kDeadlineMs};
  const auto given = [](const char* name) { return std::string(std::getenv(name) != nullptr ? std::getenv(name) : ""); };
  question.arguments = {given("CAISSON_AUTH"), given("CAISSON_TRUSTED_PEERS")};  // for statements
  auto bytes = co_await ask(loop, std::move(question));
  if (!bytes) co_return std::unexpected(std::move(bytes).error().wrap("caisson-probe"));
  policy::Reader reader(*bytes);
  std::string mark;
  Features features;
  reader(mark, features);
  if (mark != policy::frozen_mark() || !reader.whole())
    co_return fail(Code::protocol, "caisson-probe: the answer is from another version");
  ask_cgroup(features);
  co_return features;
}

}  // namespace caisson::confine
