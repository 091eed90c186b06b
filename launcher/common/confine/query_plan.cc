#include "launcher/common/base/sys.h"
#include "launcher/common/confine/frozen_plan.h"
#include "launcher/common/confine/query.h"

namespace caisson::confine {
namespace {

template <class Question>
std::string bytes_of(const Question& question) {
  policy::Writer writer;
  writer(question);
  return std::move(writer.bytes);
}

template <class T>
Result<std::vector<Answered<T>>> read_answers(std::string_view bytes, std::size_t wanted) {
  policy::Reader reader(bytes);
  Answer<T> answer;
  reader(answer);
  if (answer.mark != policy::frozen_mark() || !reader.whole() || answer.answers.size() != wanted)
    return fail(Code::protocol, "caisson-policies: the answer is from another version");
  return std::move(answer.answers);
}

// A source that was not opened is in no plan.
Status put_own_facts(Plan& plan, const PlanRequest& request) {
  if (!plan.policy) return fail(Code::protocol, "caisson-policies: a plan has no policy");
  plan.closed = request.place.closed;
  plan.disks = plan.io ? request.place.disks : std::vector<std::string>();
  for (Bind& bind : plan.binds) {
    if (bind.staged || bind.device) continue;
    const auto opened = request.sources.find(bind.source);
    if (opened == request.sources.end() || !opened->second.present)
      return fail(Code::protocol, "caisson-policies: a plan has a source that was not opened: " + quote(bind.source));
    bind.directory = opened->second.directory, bind.dev = opened->second.dev, bind.ino = opened->second.ino;
  }
  plan.protect = protect_notes(plan);
  return {};
}

}  // namespace

Task<Result<std::string>> ask_compiler(Loop& loop, const char* mode, std::string request, std::size_t most) {
  static std::map<std::string_view, std::int64_t> not_before_us;  // by mode: a request that ends one run keeps nobody from others
  const std::int64_t begin = sys::monotonic_us();
  if (begin < not_before_us[mode]) co_return fail(Code::io, "caisson-policies: failed a moment ago: try again");
  constexpr int kDeadlineMs = 20'000;  // it takes some milliseconds of a processor, for which it may wait; its own limit ends it
  Question question{.program = "caisson-policies",
                    .arguments = {mode},
                    .request = std::move(request),
                    .most = most,
                    .deadline_ms = kDeadlineMs};
  auto bytes = co_await ask(loop, std::move(question));
  if (bytes) co_return bytes;
  const std::int64_t end = sys::monotonic_us();
  not_before_us[mode] = end + std::min<std::int64_t>(3 * (end - begin), kDeadlineMs * 1000LL);
  co_return std::unexpected(std::move(bytes).error().wrap(std::string("caisson-policies: ") + mode));
}

Task<Result<Plans>> ask_plans(Loop& loop, const Features& features, std::vector<PlanRequest> requests) {
  const PlanQuestion question{policy::frozen_mark(), features, std::move(requests)};
  CO_TRY_ASSIGN(const std::string bytes, co_await ask_compiler(loop, "--plan", bytes_of(question), policy::kMaxFrozen));
  CO_TRY_ASSIGN(auto answers, read_answers<Plan>(bytes, question.requests.size()));
  Plans out;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].value) {
      out.push_back(fail(answers[i].code, std::move(answers[i].error)));
      continue;
    }
    auto plan = std::make_shared<Plan>(*answers[i].value);
    CO_TRY(put_own_facts(*plan, question.requests[i]));
    out.push_back(std::move(plan));
  }
  co_return out;
}

Task<Result<std::shared_ptr<const policy::Policy>>> ask_narrowed(Loop& loop, std::shared_ptr<const policy::Policy> policy,
                                                                 std::string asked, bool alone) {
  const NarrowQuestion question{policy::frozen_mark(), std::move(policy), std::move(asked), alone};
  CO_TRY_ASSIGN(const std::string bytes, co_await ask_compiler(loop, "--narrow", bytes_of(question), policy::kMaxFrozen));
  CO_TRY_ASSIGN(auto answers, read_answers<policy::Policy>(bytes, 1));
  if (!answers[0].value) co_return fail(answers[0].code, std::move(answers[0].error));
  auto narrowed = std::make_shared<policy::Policy>(*answers[0].value);
  narrowed->digest.clear();  // the planner makes it, from checked values
  co_return narrowed;
}

}  // namespace caisson::confine
