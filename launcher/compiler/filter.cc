#include "launcher/compiler/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "launcher/common/tables/path_calls.h"
#include "launcher/compiler/connected.h"
#include "launcher/compiler/effective.h"
#include "launcher/compiler/frozen_write.h"

namespace caisson::confine {
namespace {

using policy::ArgRule;
using policy::SyscallRule;

static_assert(std::endian::native == std::endian::little, "argument words are addressed low word first");
#if defined(__x86_64__)
constexpr std::uint32_t kArch = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kX32Bit = 0x40000000;  // x32 shares the arch number and is told by this bit
#elif defined(__aarch64__)
constexpr std::uint32_t kArch = AUDIT_ARCH_AARCH64;
constexpr std::uint32_t kX32Bit = 0;
#else
#error "port the seccomp compiler: architecture number, word order"
#endif

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
constexpr std::uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t kEnosys = SECCOMP_RET_ERRNO | ENOSYS;

// Whether a call names a file, and is told of where paths are observed.
bool is_observed(std::string_view call) {
  const auto row = std::ranges::find(kPathCalls, call, &PathCall::name);
  return row != std::end(kPathCalls) && row->observed;
}

// Errno 0 is success: the call returns 0.
std::uint32_t pretended(const policy::Pretence& p) {
  return p.error == kTold ? std::uint32_t{SECCOMP_RET_USER_NOTIF} : SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(p.error);
}

// What happens to one syscall number: a fixed answer, or a rule with conditions.
struct Answer {
  std::uint32_t ret = kEnosys;
  const SyscallRule* rule = nullptr;
  std::vector<const policy::Pretence*> before = {};  // what is asked first, one after the other
  bool operator==(const Answer&) const = default;
};

struct Range {  // [from, next range's from)
  std::uint32_t from;
  Answer answer;
};

// Binary search over the ranges: the answer of a number costs about log2(ranges) jumps. Laid out from the last instruction to the
// first, because jumps lead forward only: so every jump knows its targets, and what is near is shared. The kernel checks,
// translates and compiles the program anew for each session, and a short one costs half. An address is an index into
// `backwards_`.
class Search {
 public:
  // refuse: what is returned for a call that is refused with EPERM.
  static Program over(const std::vector<Range>& ranges, std::uint32_t refuse) {
    Search out(refuse);
    const std::size_t entry = out.tree(ranges.data(), ranges.data() + ranges.size());
    if (entry != out.backwards_.size() - 1) out.push(BPF_STMT(BPF_JMP | BPF_JA, out.distance(entry)));
    return {out.backwards_.rbegin(), out.backwards_.rend()};
  }

 private:
  explicit Search(std::uint32_t refuse) : refuse_(refuse) {}
  static constexpr std::uint32_t kReach = 250;  // of a conditional jump, 255, less what is put between
  static constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;

  std::size_t push(sock_filter instruction) {
    backwards_.push_back(instruction);
    return backwards_.size() - 1;
  }
  // From the instruction that is pushed next.
  [[nodiscard]] std::uint32_t distance(std::size_t target) const {
    return static_cast<std::uint32_t>(backwards_.size() - target - 1);
  }

  std::size_t tree(const Range* first, const Range* last) {
    if (last - first == 1) return leaf(first->answer);
    const Range* middle = first + (last - first) / 2;
    const std::size_t upper = tree(middle, last);
    return jump(BPF_JGE, middle->from, upper, tree(first, middle));
  }

  std::size_t leaf(const Answer& answer) {
    std::size_t next = answer.rule != nullptr ? rule(*answer.rule) : ret(answer.ret == kEperm ? refuse_ : answer.ret);
    for (auto before = answer.before.rbegin(); before != answer.before.rend(); ++before)
      next = first_of((*before)->when, (*before)->error == EPERM ? refuse_ : pretended(**before), next);
    return next;
  }

  std::size_t ret(std::uint32_t value) {
    const auto known = returns_.find(value);
    if (known != returns_.end() && distance(known->second) <= kReach) return known->second;
    return returns_[value] = push(BPF_STMT(BPF_RET | BPF_K, value));
  }

  // A row holds when all its conditions do; the first that holds decides.
  std::size_t rule(const SyscallRule& rule) {
    const bool refusing = !rule.refuse_if.empty();
    const auto& rows = refusing ? rule.refuse_if : rule.any_of;
    return first_of(rows, refusing ? refuse_ : kAllow, ret(refusing ? kAllow : refuse_));
  }

  // `answer` where a row holds, else what is at `next`.
  std::size_t first_of(const std::vector<std::vector<ArgRule>>& rows, std::uint32_t answer, std::size_t next) {
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      std::size_t held = ret(answer);
      for (auto arg = row->rbegin(); arg != row->rend(); ++arg) held = condition(*arg, held, next);
      next = held;
    }
    return next;
  }

  std::size_t condition(const ArgRule& arg, std::size_t yes, std::size_t no) {
    const auto base = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + arg.index * 8);
    const auto low = static_cast<std::uint32_t>(arg.value), high = static_cast<std::uint32_t>(arg.value >> 32);
    if (arg.op == "masked_eq") {
      yes = equal(base, static_cast<std::uint32_t>(arg.mask), low, yes, no);
      return equal(base + 4, static_cast<std::uint32_t>(arg.mask >> 32), high, yes, no);
    }
    if (arg.op == "eq") return equal(base + 4, ~0U, high, equal(base, ~0U, low, yes, no), no);
    if (arg.op == "ne") return equal(base + 4, ~0U, high, equal(base, ~0U, low, no, yes), yes);
    // a < v is not a >= v, and a <= v is not a > v. The high words decide unless they are equal.
    if (arg.op == "lt" || arg.op == "le") std::swap(yes, no);
    const std::uint16_t compare = arg.op == "gt" || arg.op == "le" ? BPF_JGT : BPF_JGE;
    jump(compare, low, yes, no);
    const std::size_t equal_high = load(base);
    const std::size_t not_greater = jump(BPF_JEQ, high, equal_high, no);
    jump(BPF_JGT, high, yes, not_greater);
    return load(base + 4);
  }

  std::size_t equal(std::uint32_t offset, std::uint32_t mask, std::uint32_t value, std::size_t yes, std::size_t no) {
    if (mask == 0) return yes;
    // Where to go on loads what is loaded already: behind it.
    if (mask == ~0U && backwards_[no].code == kLoad && backwards_[no].k == offset) --no;
    jump(BPF_JEQ, value, yes, no);
    if (mask != ~0U) push(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    return load(offset);
  }

  std::size_t load(std::uint32_t offset) { return push(BPF_STMT(kLoad, offset)); }

  std::size_t jump(std::uint16_t compare, std::uint32_t value, std::size_t yes, std::size_t no) {
    yes = near(yes);
    no = near(no);
    const auto to_yes = static_cast<std::uint8_t>(distance(yes)), to_no = static_cast<std::uint8_t>(distance(no));
    return push(BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | compare | BPF_K), value, to_yes, to_no));
  }

  // The target itself, or what stands for it within reach: another return of the same value, a JA, which reaches anywhere.
  std::size_t near(std::size_t target) {
    if (distance(target) <= kReach) return target;
    const sock_filter there = backwards_[target];
    return there.code == (BPF_RET | BPF_K) ? ret(there.k) : push(BPF_STMT(BPF_JMP | BPF_JA, distance(target)));
  }

  const std::uint32_t refuse_;
  Program backwards_;
  std::map<std::uint32_t, std::size_t> returns_;  // the nearest of each value
};

// The number on the native architecture; nullopt when only others have it.
// libseccomp may be older than the policy; such a call stays unknown, hence ENOSYS: less, never more.
std::optional<std::uint32_t> resolve(const std::string& name) {
  const int nr = seccomp_syscall_resolve_name(name.c_str());
  return nr < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(nr));
}

// Two sets that name one call: what either allows, but what either refuses by refuse_if stays refused.
void unite(std::map<std::uint32_t, SyscallRule>& rules, std::uint32_t nr, const SyscallRule& rule) {
  const auto [it, fresh] = rules.try_emplace(nr, rule);
  if (fresh) return;
  SyscallRule& kept = it->second;
  if (!rule.refuse_if.empty() || !kept.refuse_if.empty()) {
    kept.any_of.clear();
    kept.refuse_if.insert(kept.refuse_if.end(), rule.refuse_if.begin(), rule.refuse_if.end());
  } else if (kept.any_of.empty() || rule.any_of.empty()) {
    kept.any_of.clear();
  } else {
    kept.any_of.insert(kept.any_of.end(), rule.any_of.begin(), rule.any_of.end());
  }
}

}  // namespace

Result<Program> compile_seccomp(const std::vector<policy::SyscallSet>& sets, Refusal refusal) {
  std::map<std::uint32_t, SyscallRule> rules;
  for (const auto& set : sets) {
    for (const SyscallRule& rule : set.allow) {
      if (!rule.any_of.empty() && !rule.refuse_if.empty())
        return fail(Code::invalid_argument, "syscall '" + rule.name + "' has both any_of and refuse_if");
      if (const auto nr = resolve(rule.name)) unite(rules, *nr, rule);
    }
  }
  std::map<std::uint32_t, Answer> answers;
  for (const auto& [nr, rule] : rules)
    answers[nr] = rule.any_of.empty() && rule.refuse_if.empty() ? Answer{kAllow} : Answer{kAllow, &rule};
  for (const auto& set : sets) {
    for (const std::string& name : set.refuse)
      if (const auto nr = resolve(name)) answers[*nr] = {kEperm};
  }
  const std::string refused = refusals(sets);
  for (const auto& [nr, rule] : rules)
    if (refusal == Refusal::observe && is_observed(rule.name) && !refused.contains("\n" + std::to_string(nr) + " "))
      answers[nr] = {SECCOMP_RET_USER_NOTIF};
  for (const auto& set : sets)
    for (const policy::Pretence& p : set.pretend)
      if (const auto nr = resolve(p.name)) {
        // A connector is told of what the sets allow, under conditions or not: what a policy denies it does not get back.
        if (p.error == kTold && (!answers.contains(*nr) || answers[*nr] == Answer{kEperm})) continue;
        if (p.when.empty()) answers[*nr] = {pretended(p)};
        else answers[*nr].before.push_back(&p);
      }
  // clone3 hides its flags behind a pointer, where no filter can see them: never anything but "no such call".
  if (const auto nr = resolve("clone3")) answers[*nr] = {kEnosys};

  std::vector<Range> ranges{{0, {}}};
  std::uint32_t next = 0;
  for (const auto& [nr, answer] : answers) {
    if (nr > next && !(ranges.back().answer == Answer{})) ranges.push_back({next, {}});
    if (nr == 0) ranges.back().answer = answer;
    else if (!(ranges.back().answer == answer)) ranges.push_back({nr, answer});
    next = nr + 1;
  }
  ranges.push_back({next, {}});
  if (kX32Bit != 0) ranges.push_back({kX32Bit, {kKill}});

  const std::uint32_t refuse = refusal == Refusal::answer ? kEperm : std::uint32_t{SECCOMP_RET_USER_NOTIF};
  Program program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0), BPF_STMT(BPF_RET | BPF_K, kKill),
                  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  const Program rest = Search::over(ranges, refuse);
  program.insert(program.end(), rest.begin(), rest.end());
  if (program.size() > BPF_MAXINSNS)
    return fail(Code::limit, "seccomp program over " + std::to_string(BPF_MAXINSNS) + " instructions");
  return program;
}

std::string refusals(const std::vector<policy::SyscallSet>& sets) {
  std::map<std::uint32_t, std::string> rows;
  const auto add = [&rows](const std::string& name, const std::string& set, const char* rule) {
    const auto nr = resolve(name);
    if (!nr) return;
    std::string& row = rows[*nr];
    row += (row.empty() ? name + " seccomp/" : ", seccomp/") + set + rule;
  };
  for (const auto& set : sets) {
    for (const SyscallRule& rule : set.allow)
      if (!rule.any_of.empty() || !rule.refuse_if.empty())
        add(rule.name, set.name, rule.any_of.empty() ? ": refuse_if" : ": any_of");
    std::set<std::string> refusing;
    for (const policy::Pretence& p : set.pretend)
      if (p.error == EPERM && refusing.insert(p.name).second) add(p.name, set.name, "");
    // What a set could allow and does not here: its `needs`, or the policy's `deny`.
    for (const std::string& name : set.refuse) add(name, set.name, set.name == "refused" ? "" : ": refused here");
  }
  std::string out = "\n";
  for (const auto& [nr, row] : rows) out += std::to_string(nr) + " " + row + "\n";
  return out;
}

namespace {

// Answered as by a Landlock that governs it. Asked before the sets' own rule, which stays: what they do not allow, or under
// conditions, this does not widen. Access mode 3 is for ioctl(2) alone: neither reading nor writing is asked for, and both of the
// file's mode are needed.
policy::Pretence no_opening(const char* name, unsigned flags, bool cuts) {
  const auto with = [flags](int bits, int mask) {
    return std::vector{ArgRule{flags, "masked_eq", static_cast<unsigned>(bits), static_cast<unsigned>(mask)}};
  };
  policy::Pretence out{name, EACCES, {with(O_ACCMODE, O_ACCMODE)}};
  if (cuts) out.when.push_back(with(O_TRUNC | O_RDONLY, O_TRUNC | O_ACCMODE));
  return out;
}

struct Asked {
  std::string name, rules;
  bool applies = false;
};
// As filter_request() (common/confine/query_filter.cc) writes it.
template <class A>
void members(A& a, Asked& asked) {
  a(asked.name, asked.applies, asked.rules);
}

Result<std::vector<policy::SyscallSet>> asked_sets(const std::vector<Asked>& asked) {
  std::vector<policy::SyscallSet> sets;
  std::set<std::string> on;
  for (const Asked& one : asked) {
    policy::SyscallSet& set = sets.emplace_back();
    set.name = one.name;
    set.rules = one.rules;
    if (!thaw_rules(set)) return fail(Code::protocol, "set '" + one.name + "' has no rules");
    if (one.applies) on.insert(one.name);
  }
  return policy::effective_sets(std::move(sets), [&on](const policy::SyscallSet& set) { return on.contains(set.name); });
}

Result<Filter> asked_filter(std::string_view request) {
  policy::Reader reader(request);
  std::string mark;
  unsigned char refusal = 0;
  unsigned char ungoverned = 0, connected = 0;
  std::vector<Asked> asked;
  reader(mark, refusal, ungoverned, connected, asked);
  if (mark != policy::frozen_mark() || !reader.whole() || refusal > static_cast<int>(Refusal::observe) ||
      ungoverned > static_cast<int>(Ungoverned::truncation))
    return fail(Code::protocol, "the request is from another version");
  TRY_ASSIGN(auto sets, asked_sets(asked));
  if (ungoverned != 0) sets.push_back(stands_in(static_cast<Ungoverned>(ungoverned)));
  if (connected != 0) sets.push_back(connected_calls());
  TRY_ASSIGN(Program program, compile_seccomp(sets, static_cast<Refusal>(refusal)));
  return Filter{std::move(program), refusals(sets)};
}

}  // namespace

policy::SyscallSet stands_in(Ungoverned ungoverned) {
  const bool cuts = ungoverned == Ungoverned::truncation;
  policy::SyscallSet set{.name = "ungoverned",
                         .pretend = {no_opening("open", 1, cuts), no_opening("openat", 2, cuts), {"openat2", ENOSYS, {}}}};
  if (cuts) set.refuse.push_back("truncate");
  return set;
}

std::string filter_answer(const Result<Filter>& filter) {
  policy::Writer writer;
  const Filter& sent = filter ? *filter : Filter{};
  writer(policy::frozen_mark(), filter ? "" : filter.error().text(),
         std::string(reinterpret_cast<const char*>(sent.program.data()), sent.program.size() * sizeof(sock_filter)),
         sent.refusals);
  return std::move(writer.bytes);
}

std::string answer_filter(std::string_view request) { return filter_answer(asked_filter(request)); }

}  // namespace caisson::confine
