// Whether Chromium has confined its renderers, as the kernel shows it in /proc/PID/status. The session's walls stand without
// Chromium's own; but a page that takes its renderer over would then be in the browser. Nothing here trusts what Chromium says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/common/base/result.h"

namespace caisson::cdp {

// Tries the calls with which Chromium's sandbox begins, in a child of ours. A container's seccomp profile may refuse one, and
// Chromium would end in a crash of its zygote that names none. unavailable: which call, its error, and what permits it.
[[nodiscard]] Status try_sandbox();

struct Process {
  pid_t pid = 0, parent = 0;
  std::uint64_t started = 0;  // clock ticks after boot: with it, a pid means one process
};

struct Confinement {
  std::size_t pid_namespaces = 0;  // numbers in NSpid: as many as there are namespaces from ours down to its own
  std::size_t filters = 0;         // Seccomp_filters
};

// All processes that descend from `ancestor`; of at most kMaxProcesses that /proc has. A process whose parent has ended is ours
// to reap (PR_SET_CHILD_SUBREAPER), so it descends from us.
inline constexpr std::size_t kMaxProcesses = 32 * 1024;
[[nodiscard]] std::vector<Process> descendants(pid_t ancestor);
// Its command line has --type=TYPE. The zygote's children write theirs over as one text, without NULs.
[[nodiscard]] bool has_type(pid_t pid, std::string_view type);
// Nothing for a process that is gone.
[[nodiscard]] std::optional<Confinement> confinement_of(pid_t pid);

class Watch {
 public:
  // A renderer has its title before its filter: it is younger than that, or judged. Its namespaces it has from the beginning.
  static constexpr std::int64_t kFilterWithinUs = 10'000'000;

  // least_filters: of a renderer, in all; 0: at least two, and one more than this process has itself.
  explicit Watch(std::size_t least_filters);

  struct Finding {
    pid_t pid = 0;
    std::string why;
  };
  // Looks at every renderer of these. The first that is not confined, if any.
  [[nodiscard]] std::optional<Finding> look(const std::vector<Process>& processes, std::int64_t now_us);
  [[nodiscard]] std::size_t renderers() const { return first_seen_.size(); }  // at the last look
  // The rule itself.
  [[nodiscard]] std::string judge(const Confinement& it, std::int64_t known_for_us) const;

 private:
  Confinement own_;
  std::size_t least_filters_;
  std::map<std::pair<pid_t, std::uint64_t>, std::int64_t> first_seen_;
};

// The zygotes, from which Chromium forks the process of each page. It starts none again: without them it stays, and every page
// crashes.
class Zygotes {
 public:
  // True: one that was there at an earlier look, a child of the browser, is gone; or the browser answers (`ready`) and has none.
  // `processes`: descendants of a process above it.
  [[nodiscard]] bool lost(pid_t browser, const std::vector<Process>& processes, bool ready);
  void clear() { seen_.clear(); }  // another browser

 private:
  std::set<std::pair<pid_t, std::uint64_t>> seen_;
};

}  // namespace caisson::cdp
