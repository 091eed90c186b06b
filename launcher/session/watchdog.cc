// What stands in for the cgroup where there is none.
#include <algorithm>

#include "launcher/base/sys.h"
#include "launcher/session/manager.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kWatchdogUs = 500'000;

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
    if (usage.memory_bytes > limits.memory_bytes) usage.memory_bytes = tree.proportional_bytes(session.pid());
    const char* limit = usage.memory_bytes > limits.memory_bytes ? "memory"
                        : usage.processes > limits.processes     ? "processes"
                                                                 : nullptr;
    if (limit == nullptr) continue;
    (void)entry->log->append(
        audit::Event::limit_hit,
        {{"limit", limit}, {"processes", usage.processes}, {"memory_bytes", usage.memory_bytes}, {"by", "watchdog"}});
    session.end(limit);
  }
}

}  // namespace caisson::session
