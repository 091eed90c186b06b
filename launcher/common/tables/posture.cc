// One row a deduction.
#include "launcher/common/tables/posture.h"

#include <algorithm>

namespace caisson {
namespace {

using json::Value;

// One of kScored, or it does not compile.
struct Scored {
  consteval Scored(const char* field) : name(field) {
    if (std::ranges::find(kScored, name) == std::end(kScored)) throw "not in kScored";
  }
  std::string_view name;
};

class Score {
 public:
  explicit Score(const Value& policy) : p_(policy) {}

  std::vector<Deduction> all() {
    walls();
    files();
    rest();
    return std::move(out_);
  }

 private:
  void take(bool holds, int points, Scored field, std::string reason) {
    if (holds) out_.push_back({points, std::string(field.name), std::move(reason)});
  }
  static bool has(const Value& list, const Value& name) { return std::ranges::find(list, name) != list.end(); }
  [[nodiscard]] std::uint64_t number(const char* object, const char* name) const {
    return p_.at(object).at(name).get<std::uint64_t>();
  }

  void walls() {
    const Value& tier = p_.at("min_tier");
    take(tier == "T1", 15, "/min_tier", "may start where all sessions have one user and there are no namespaces");
    take(tier == "T0", 10, "/min_tier", "may start where there are no namespaces");
    take(tier == "T2", 4, "/min_tier", "may start where /proc is shared with the container");
    for (const auto& [mechanism, points] :
         {std::pair("seccomp", 15), std::pair("landlock", 10), std::pair("capabilities", 10), std::pair("no_new_privs", 10)})
      take(!has(p_.at("require"), mechanism), points, "/require", "may start without " + std::string(mechanism));
    for (const Value& m : p_.at("disable")) take(true, 15, "/disable", "switches off " + m.get<std::string>());
    const Value& sets = p_.at("syscalls").at("allow");
    take(has(sets, "debug"), 10, "/syscalls/allow", "allows ptrace, the kernel interface with the longest list of faults");
    take(has(sets, "nested-sandbox"), 8, "/syscalls/allow", "makes user namespaces of its own, with capabilities in them");
    take(has(sets, "ipc-sysv"), 2, "/syscalls/allow", "allows System V IPC, whose objects outlive processes");
  }

  void files() {
    take(p_.at("home") == "workspace", 8, "/home", "shares its home: the next session may run what this one plants there");
    take(p_.at("home") == "read", 3, "/home", "reads what other sessions of its workspace keep at home");
    take(p_.at("tmp") == "workspace", 4, "/tmp", "shares /tmp with the sessions of its workspace");
    take(p_.at("exec_writable") == true, 5, "/exec_writable", "runs programs that sessions write");
    take(p_.at("system_packages") == true, 6, "/system_packages",
         "installs packages, with programs that other sessions of its workspace run");
    take(p_.at("proc_shared_fallback") == true, 4, "/proc_shared_fallback",
         "may list the container's processes where no fresh /proc can be mounted");
    int writable = 0, both = 0;
    for (const Value& grant : p_.at("grants")) {
      if (grant.at("access") != "read-write") continue;
      ++writable;
      if (grant.at("execute") == true) ++both;
    }
    take(writable > 0, std::min(20, 5 * writable), "/grants", "writes to " + std::to_string(writable) + " grants");
    take(both > 0, std::min(10, 5 * both), "/grants", "runs programs from " + std::to_string(both) + " grants that it writes");
    take(!p_.at("umask").get<std::string>().ends_with("77"), 1, "/umask", "makes files that others may read");
  }

  void rest() {
    take(p_.at("network") == "loopback", 5, "/network", "has internet sockets and reaches its workspace's servers on loopback");
    for (const auto& [network, points, what] :
         {std::tuple("allowlist", 10, "has internet sockets and a way out to what its list names"),
          std::tuple("monitor", 25, "reaches every public address"),
          std::tuple("open", 30, "reaches every public address, without a record of each")})
      take(p_.at("network") == network, points, "/network", what);
    int inside = 0;
    if (p_.contains("egress"))
      for (const Value& rule : p_.at("egress")) inside += rule.contains("private") ? 1 : 0;
    take(inside > 0, 5, "/egress", "has " + std::to_string(inside) + " names that may lead to private addresses");
    const std::size_t ports = p_.contains("published_ports") ? p_.at("published_ports").size() : 0;
    take(ports > 0, 5, "/published_ports", "opens " + std::to_string(ports) + " ports to clients without a credential");
    const std::size_t areas = p_.contains("api") ? p_.at("api").size() : 0;
    take(areas > 0, 5, "/api", "lets its programs use " + std::to_string(areas) + " areas of the API");
    take(number("limits", "processes") > 1024, 2, "/limits/processes", "may have more than 1024 processes");
    take(number("limits", "session_seconds") > 86400, 3, "/limits/session_seconds", "may live longer than a day");
    const auto more = static_cast<int>(p_.at("weaken").size());
    take(more > 0, std::min(8, more), "/weaken", "gives more than base in " + std::to_string(more) + " fields");
    take(!has(p_.at("env").at("client_deny"), "LD_*"), 3, "/env/client_deny",
         "lets a request set variables of the dynamic linker");
    take(p_.at("audit").at("denials") == false, 5, "/audit/denials", "does not record refused calls");
    take(number("audit", "keep_days") < 30, 3, "/audit/keep_days", "keeps its record for less than 30 days");
    take(p_.at("audit").at("on_full") == "stderr", 5, "/audit/on_full", "continues when it cannot be recorded");
  }

  const Value& p_;
  std::vector<Deduction> out_;
};

}  // namespace

std::vector<Deduction> deductions(const Value& policy) { return Score(policy).all(); }

int score(const std::vector<Deduction>& deductions) {
  int out = 100;
  for (const Deduction& d : deductions) out -= d.points;
  return std::max(0, out);
}

Value score_json(const Value& policy) {
  const auto taken = deductions(policy);
  Value out{{"value", score(taken)}, {"of", 100}, {"deductions", Value::array()}};
  for (const Deduction& d : taken) out["deductions"].push_back({{"points", d.points}, {"field", d.field}, {"reason", d.reason}});
  return out;
}

}  // namespace caisson
