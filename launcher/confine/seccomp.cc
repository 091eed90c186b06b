#include "launcher/confine/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "launcher/confine/raw.h"

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

// What happens to one syscall number: a fixed answer, or a rule with conditions.
struct Answer {
  std::uint32_t ret = kEnosys;
  const SyscallRule* rule = nullptr;
  bool operator==(const Answer&) const = default;
};

struct Range {  // [from, next range's from)
  std::uint32_t from;
  Answer answer;
};

class Assembler {
 public:
  explicit Assembler(std::uint32_t refuse) : refuse_(refuse) {}
  Program take() { return std::move(code_); }

  void ret(std::uint32_t value) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, value)); }
  void load(std::uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }

  // Binary search: the answer of a number costs about log2(ranges) jumps. A conditional jump reaches 255 instructions; where
  // the lower half is longer, it is followed by a JA, which reaches anywhere.
  void tree(const Range* first, const Range* last) {
    if (last - first == 1) return leaf(first->answer);
    const Range* middle = first + (last - first) / 2;
    Assembler lower(refuse_);
    lower.tree(first, middle);
    const Program half = lower.take();
    if (half.size() <= 255) {
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, middle->from, static_cast<std::uint8_t>(half.size()), 0));
    } else {
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, middle->from, 0, 1));
      code_.push_back(BPF_STMT(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(half.size())));
    }
    code_.insert(code_.end(), half.begin(), half.end());
    tree(middle, last);
  }

 private:
  std::size_t placeholder() {
    code_.push_back(BPF_STMT(BPF_JMP | BPF_JA, 0));
    return code_.size() - 1;
  }
  void land(std::size_t jump) { code_[jump].k = static_cast<std::uint32_t>(code_.size() - jump - 1); }

  void leaf(const Answer& answer) {
    if (answer.rule == nullptr) return ret(answer.ret == kEperm ? refuse_ : answer.ret);
    const bool refusing = !answer.rule->refuse_if.empty();
    const auto& rows = refusing ? answer.rule->refuse_if : answer.rule->any_of;
    for (const auto& row : rows) {
      std::vector<std::size_t> misses;
      for (const ArgRule& arg : row) condition(arg, misses);
      ret(refusing ? refuse_ : kAllow);
      for (const std::size_t miss : misses) land(miss);
    }
    ret(refusing ? kAllow : refuse_);
  }

  // Falls through when the condition holds; else jumps to what `misses` will be landed on.
  void condition(const ArgRule& arg, std::vector<std::size_t>& misses) {
    const auto base = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + arg.index * 8);
    const auto low = static_cast<std::uint32_t>(arg.value), high = static_cast<std::uint32_t>(arg.value >> 32);
    if (arg.op == "masked_eq") {
      word(base + 4, static_cast<std::uint32_t>(arg.mask >> 32), high, misses);
      word(base, static_cast<std::uint32_t>(arg.mask), low, misses);
    } else if (arg.op == "eq") {
      word(base + 4, ~0U, high, misses);
      word(base, ~0U, low, misses);
    } else if (arg.op == "ne") {
      load(base + 4);
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 3));  // high differs: holds
      load(base);
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 1));
      misses.push_back(placeholder());
    } else {
      ordered(arg.op, base, high, low, misses);
    }
  }

  void word(std::uint32_t offset, std::uint32_t mask, std::uint32_t value, std::vector<std::size_t>& misses) {
    if (mask == 0) return;
    load(offset);
    if (mask != ~0U) code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
    misses.push_back(placeholder());
  }

  // a > v and a >= v directly; a < v and a <= v are their negations. The high words decide unless they are equal.
  void ordered(const std::string& op, std::uint32_t base, std::uint32_t high, std::uint32_t low,
               std::vector<std::size_t>& misses) {
    const bool negated = op == "lt" || op == "le";
    const auto jump = static_cast<std::uint16_t>(BPF_JMP | BPF_K | (op == "gt" || op == "le" ? BPF_JGT : BPF_JGE));
    load(base + 4);
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, high, 4, 0));  // greater: to "yes"
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 2));  // less: to "no"
    load(base);
    code_.push_back(BPF_JUMP(jump, low, 1, 0));
    if (negated) {
      code_.push_back(BPF_STMT(BPF_JMP | BPF_JA, 1));  // "no": the negation holds
      misses.push_back(placeholder());                 // "yes": it does not
    } else {
      misses.push_back(placeholder());  // "no"; "yes" is behind it
    }
  }

  Program code_;
  const std::uint32_t refuse_;
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
    answers[nr] = rule.any_of.empty() && rule.refuse_if.empty() ? Answer{kAllow, nullptr} : Answer{kAllow, &rule};
  for (const auto& set : sets) {
    for (const std::string& name : set.refuse)
      if (const auto nr = resolve(name)) answers[*nr] = {kEperm, nullptr};
  }
  // clone3 hides its flags behind a pointer, where no filter can see them: never anything but "no such call".
  if (const auto nr = resolve("clone3")) answers[*nr] = {kEnosys, nullptr};

  std::vector<Range> ranges{{0, {}}};
  std::uint32_t next = 0;
  for (const auto& [nr, answer] : answers) {
    if (nr > next && !(ranges.back().answer == Answer{})) ranges.push_back({next, {}});
    if (nr == 0) ranges.back().answer = answer;
    else if (!(ranges.back().answer == answer)) ranges.push_back({nr, answer});
    next = nr + 1;
  }
  ranges.push_back({next, {}});
  if (kX32Bit != 0) ranges.push_back({kX32Bit, {kKill, nullptr}});

  const std::uint32_t refuse = refusal == Refusal::notify ? std::uint32_t{SECCOMP_RET_USER_NOTIF} : kEperm;
  Assembler out(refuse);
  out.load(offsetof(seccomp_data, arch));
  Program program = out.take();
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, kKill));
  Assembler body(refuse);
  body.load(offsetof(seccomp_data, nr));
  body.tree(ranges.data(), ranges.data() + ranges.size());
  const Program rest = body.take();
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
    // What a set could allow and does not here: its `needs`, or the policy's `deny`.
    for (const std::string& name : set.refuse) add(name, set.name, set.name == "refused" ? "" : ": refused here");
  }
  std::string out = "\n";
  for (const auto& [nr, row] : rows) out += std::to_string(nr) + " " + row + "\n";
  return out;
}

int load_seccomp(const Program& program, int* listener) {
  sock_fprog fprog{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  // WAIT_KILLABLE_RECV (Linux 5.19): once a call is in the listener's hands only SIGKILL interrupts it. Other signals would make
  // the kernel start it again, and one call would be on record twice.
  const unsigned long flags =
      listener != nullptr ? SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV : 0UL;
  const auto result = static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &fprog));
  if (listener == nullptr || result < 0) return result;
  *listener = result;
  return 0;
}

}  // namespace caisson::confine
