#include <cstring>
#include <map>

#include "launcher/common/confine/query.h"
#include "launcher/common/policy/frozen.h"

namespace caisson::confine {
namespace {

constexpr std::size_t kMost = 1 << 20;
constexpr std::size_t kKept = 64;

void put(std::string& out, std::size_t size) { out.append(reinterpret_cast<const char*>(&size), sizeof size); }
void put(std::string& out, const std::string& text) {
  put(out, text.size());
  out += text;
}

}  // namespace

// Read by answer_filter() (compiler/filter.cc).
std::string filter_request(const Plan& plan) {
  const std::set<Mechanism> enforced = enforced_mechanisms(plan);
  const Refusal told = plan.observe ? Refusal::observe : Refusal::notify;
  std::string out;
  put(out, policy::frozen_mark());
  out += static_cast<char>(plan.enforces(Mechanism::denial_audit) ? told : Refusal::answer);
  out.append({static_cast<char>(plan.ungoverned), static_cast<char>(plan.connected)});
  put(out, plan.policy->sets.size());
  for (const policy::SyscallSet& set : plan.policy->sets) {
    put(out, set.name);
    out += policy::applies(set, plan.policy->network, enforced) ? '\1' : '\0';
    put(out, set.rules);
  }
  return out;
}

Result<Filter> read_filter(std::string_view answer) {
  policy::Reader reader(answer);
  std::string mark, error, program;
  Filter filter;
  reader(mark, error, program, filter.refusals);
  if (mark != policy::frozen_mark() || !reader.whole()) return fail(Code::protocol, "the answer is from another version");
  if (!error.empty()) return fail(Code::invalid_argument, error);
  if (program.empty() || program.size() % sizeof(sock_filter) != 0 || program.size() / sizeof(sock_filter) > BPF_MAXINSNS)
    return fail(Code::protocol, "the answer is not a valid filter");
  filter.program.resize(program.size() / sizeof(sock_filter));
  std::memcpy(filter.program.data(), program.data(), program.size());
  return filter;
}

// What was answered is kept: narrowed sessions ask again and again, and for few different ones.
Task<Result<Filter>> ask_filter(Loop& loop, const Plan& plan) {
  static std::map<std::string, Filter> kept;
  std::string request = filter_request(plan);
  if (const auto known = kept.find(request); known != kept.end()) co_return known->second;
  CO_TRY_ASSIGN(const std::string bytes, co_await ask_compiler(loop, "--filter", request, kMost));
  auto filter = read_filter(bytes);
  if (!filter) co_return std::unexpected(std::move(filter).error().wrap("caisson-policies: --filter"));
  if (kept.size() >= kKept) kept.clear();
  co_return kept[std::move(request)] = std::move(*filter);
}

}  // namespace caisson::confine
