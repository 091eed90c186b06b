// The posture score (facts.h): one row a deduction.
#include <algorithm>

#include "launcher/policy/facts.h"

namespace caisson::policy {
namespace {

class Score {
 public:
  explicit Score(const Policy& p) : p_(p) {}

  std::vector<Deduction> all() {
    walls();
    files();
    rest();
    return std::move(out_);
  }

 private:
  void take(bool holds, int points, const char* field, std::string reason) {
    if (holds) out_.push_back({points, field, std::move(reason)});
  }

  void walls() {
    take(p_.min_tier == Tier::t1, 15, "/min_tier", "may start where all sessions have one user and there are no namespaces");
    take(p_.min_tier == Tier::t0, 10, "/min_tier", "may start where there are no namespaces");
    take(p_.min_tier == Tier::t2, 4, "/min_tier", "may start where /proc is shared with the container");
    for (const auto& [mechanism, points] : {std::pair(Mechanism::seccomp, 15), std::pair(Mechanism::landlock, 10),
                                            std::pair(Mechanism::capabilities, 10), std::pair(Mechanism::no_new_privs, 10)})
      take(!p_.require.contains(mechanism), points, "/require", "may start without " + std::string(mechanism_name(mechanism)));
    for (const Mechanism m : p_.disable) take(true, 15, "/disable", "switches off " + std::string(mechanism_name(m)));
    const auto allows = [this](const char* set) { return std::ranges::find(p_.syscalls.allow, set) != p_.syscalls.allow.end(); };
    take(allows("debug"), 10, "/syscalls/allow", "allows ptrace, the kernel interface with the longest list of faults");
    take(allows("ipc-sysv"), 2, "/syscalls/allow", "allows System V IPC, whose objects outlive processes");
  }

  void files() {
    take(p_.home == Scope::workspace, 8, "/home", "shares its home: what one session plants there, the next one runs");
    take(p_.tmp == Scope::workspace, 4, "/tmp", "shares /tmp with the sessions of its workspace");
    take(p_.exec_writable, 5, "/exec_writable", "runs programs that were written or sent");
    take(p_.proc_shared_fallback, 4, "/proc_shared_fallback",
         "may see the container's processes where no fresh /proc can be had");
    int writable = 0, both = 0;
    for (const Grant& g : p_.grants) {
      if (g.access != Access::read_write) continue;
      ++writable;
      if (g.execute) ++both;
    }
    take(writable > 0, std::min(20, 5 * writable), "/grants", "writes to " + std::to_string(writable) + " grants");
    take(both > 0, std::min(10, 5 * both), "/grants", "runs programs from " + std::to_string(both) + " grants that it writes");
    take((p_.umask & 077) != 077, 1, "/umask", "makes files that others may read");
  }

  void rest() {
    take(p_.network == Network::loopback, 5, "/network", "has internet sockets, and the servers of its workspace on loopback");
    take(p_.limits.processes > 1024, 2, "/limits/processes", "may have more than 1024 processes");
    take(p_.limits.session_seconds > 86400, 3, "/limits/session_seconds", "may live longer than a day");
    const int more = static_cast<int>(p_.weaken.size());
    take(more > 0, std::min(8, more), "/weaken", "gives more than base in " + std::to_string(more) + " fields");
    take(std::ranges::find(p_.env.client_deny, "LD_*") == p_.env.client_deny.end(), 3, "/env/client_deny",
         "lets a request set variables of the dynamic linker");
    take(!p_.audit.denials, 5, "/audit/denials", "does not record refused calls");
    take(p_.audit.keep_days < 30, 3, "/audit/keep_days", "keeps its record for less than 30 days");
    take(p_.audit.on_full == OnFull::stderr_, 5, "/audit/on_full", "goes on when it cannot be recorded");
  }

  const Policy& p_;
  std::vector<Deduction> out_;
};

}  // namespace

std::vector<Deduction> deductions(const Policy& policy) { return Score(policy).all(); }

int score(const std::vector<Deduction>& deductions) {
  int out = 100;
  for (const Deduction& d : deductions) out -= d.points;
  return std::max(0, out);
}

}  // namespace caisson::policy
