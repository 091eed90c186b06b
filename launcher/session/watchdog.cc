// What stands in for the cgroup where there is none, and for a cover that the kernel does not keep.
#include <algorithm>

#include "launcher/base/sys.h"
#include "launcher/session/manager.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kWatchdogUs = 500'000, kCoversUs = 1'000'000;

}  // namespace

// One pass over /proc serves everybody for ten times as long as it took: however often a client asks, a tenth of the
// launcher's time goes to it.
const ProcessTree& Manager::processes() const {
  if (const std::int64_t begin = sys::monotonic_us(); begin > tree_until_us_) {
    tree_ = ProcessTree::read();
    const std::int64_t end = sys::monotonic_us();
    tree_until_us_ = end + 10 * (end - begin);
  }
  return tree_;
}

// Stands in for the cgroup: counts what a session really uses and ends it when it is over.
void Manager::watchdog() {
  loop_.after(kWatchdogUs, [this] { watchdog(); });
  if (std::ranges::none_of(entries_, [](const auto& e) { return e.second->session->state() == State::running; })) return;
  const ProcessTree& tree = processes();
  for (auto& [id, entry] : entries_) {
    Session& session = *entry->session;
    if (session.state() != State::running) continue;
    Usage usage = tree.usage(session.pid());
    const policy::Limits& limits = session.policy().limits;
    // A fork bomb is over its processes, and its memory is not asked for.
    const char* limit = usage.processes > limits.processes ? "processes" : nullptr;
    if (limit == nullptr && usage.memory_bytes > limits.memory_bytes) {
      usage.memory_bytes = tree.proportional_bytes(session.pid());
      if (usage.memory_bytes > limits.memory_bytes) limit = "memory";
    }
    if (limit == nullptr) continue;
    (void)entry->log->append(
        audit::Event::limit_hit,
        {{"limit", limit}, {"processes", usage.processes}, {"memory_bytes", usage.memory_bytes}, {"by", "watchdog"}});
    session.end(limit);
  }
  watch_workspaces(tree);
}

// Who replaces a hidden file outside takes its cover away in every session, and no rule of the kernel's keeps it.
void Manager::watch_covers() {
  loop_.after(kCoversUs, [this] { watch_covers(); });
  for (auto& [id, entry] : entries_) (void)entry->session->check_covers();
}

// The sessions of a workspace together: when they are over, the largest has to go. Processes the kernel counts by uid, but in
// each user namespace for itself, and a private session has one of its own.
void Manager::watch_workspaces(const ProcessTree& tree) {
  const policy::Limits& most = settings_.workspaces.limits;
  for (const auto& [name, workspace] : workspaces_) {
    if (workspace.get() == default_) continue;
    Entry *victim = nullptr, *forker = nullptr;
    std::uint64_t sum = 0, processes = 0, most_forked = 0;
    for (const bool exact : {false, true}) {
      std::uint64_t largest = sum = 0;
      for (auto& [id, entry] : entries_) {
        if (entry->workspace != workspace.get() || entry->session->state() != State::running) continue;
        const pid_t pid = entry->session->pid();
        const Usage usage = tree.usage(pid);
        const std::uint64_t bytes = exact ? tree.proportional_bytes(pid) : usage.memory_bytes;
        sum += bytes;
        if (bytes >= largest) victim = entry.get(), largest = bytes;
        if (!exact) processes += usage.processes;
        if (usage.processes >= most_forked) forker = entry.get(), most_forked = usage.processes;
      }
      if (sum <= most.memory_bytes || processes > most.processes) break;
    }
    const bool forked = processes > most.processes;
    if (!forked && sum <= most.memory_bytes) continue;
    if (forked) victim = forker;
    (void)victim->log->append(audit::Event::limit_hit, {{"limit", forked ? "workspace_processes" : "workspace_memory"},
                                                        {"memory_bytes", sum},
                                                        {"processes", processes},
                                                        {"by", "watchdog"}});
    victim->session->end(forked ? "processes" : "memory");
  }
}

}  // namespace caisson::session
