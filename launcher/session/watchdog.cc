// What stands in for the cgroup where there is none, and for a cover that the kernel does not keep.
#include <algorithm>

#include "launcher/base/sys.h"
#include "launcher/session/manager.h"

namespace caisson::session {
namespace {

// One that caisson-homes is asked about: "label/limit/pid,pid".
std::string group(const std::string& label, std::uint64_t limit, const std::string& pids) {
  return label + "/" + std::to_string(limit) + "/" + pids;
}

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

// Stands in for the cgroup: counts what a session really uses and ends it when it is over. What a pass says of memory is too
// much, for it counts what several share for each, and too little, for files in memory that are open and not mapped are no
// process's. So whoever could be over its limit is weighed.
void Manager::watchdog() {
  loop_.after(kWatchdogUs, [this] { watchdog(); });
  if (std::ranges::none_of(entries_, [](const auto& e) { return e.second->session->state() == State::running; })) return;
  const ProcessTree& tree = processes();
  const std::uint64_t files = ProcessTree::files_in_memory();
  std::vector<std::string> groups;
  for (auto& [id, entry] : entries_) {
    const Session& session = *entry->session;
    if (session.state() != State::running) continue;
    const Usage usage = tree.usage(session.pid());
    const policy::Limits& limits = session.policy().limits;
    // A fork bomb is over its processes, and its memory is not asked for.
    if (usage.processes > limits.processes) over(*entry, "processes", "", limits.processes, usage);
    else if (usage.memory_bytes + files > limits.memory_bytes)
      groups.push_back(group(id, limits.memory_bytes, std::to_string(session.pid())));
  }
  watch_workspaces(tree, files, groups);
  weigh(std::move(groups));
}

// what: "processes" or "memory"; whose: "", or "workspace_" for a limit of all of its sessions.
void Manager::over(Entry& entry, const std::string& what, const std::string& whose, std::uint64_t allowed, const Usage& usage) {
  const bool forked = what == "processes";
  (void)entry.log->append(
      audit::Event::limit_hit,
      {{"limit", whose + what}, {"processes", usage.processes}, {"memory_bytes", usage.memory_bytes}, {"by", "watchdog"}});
  json::Value hit{{"allowed", allowed}, {"figure", forked ? usage.processes : usage.memory_bytes}};
  if (!whose.empty()) hit["limit"] = whose + (forked ? what : "memory_bytes");
  entry.session->end(what, std::move(hit));
}

// caisson-homes looks, for it takes time: thousands of processes may have to be asked.
void Manager::weigh(std::vector<std::string> groups) {
  if (groups.empty() || weighing_) return;
  weighing_ = true;
  groups.insert(groups.begin(), "weigh");
  homes_->run(loop_, std::move(groups), [this](const Result<json::Value>& told) {
    weighing_ = false;
    if (!told) return sys::say("caisson-launcher: memory of sessions cannot be counted: " + told.error().text());
    for (const auto& label : told->value("unread", json::Value::array()))
      if (const auto it = entries_.find(label.get<std::string>()); it != entries_.end()) it->second->unread = true;
    for (const auto& one : told->value("over", json::Value::array())) {
      const auto largest = one.value("largest", 0);
      const auto it = std::ranges::find_if(entries_, [&](const auto& e) {
        return e.second->session->pid() == largest && e.second->session->state() == State::running;
      });
      if (it == entries_.end()) continue;
      Entry& entry = *it->second;
      const bool alone = it->first == one.value("label", "");  // else all of its workspace
      Usage usage = processes().usage(largest);
      usage.memory_bytes = one.value("bytes", std::uint64_t{0});
      over(entry, "memory", alone ? "" : "workspace_",
           alone ? entry.session->policy().limits.memory_bytes : settings_.workspaces.limits.memory_bytes, usage);
    }
  });
}

// Who replaces a hidden file outside takes its cover away in every session, and no rule of the kernel's keeps it.
void Manager::watch_covers() {
  loop_.after(kCoversUs, [this] { watch_covers(); });
  for (auto& [id, entry] : entries_) (void)entry->session->check_covers();
}

// The sessions of a workspace together: when they are over, the largest has to go. Processes the kernel counts by uid, but in
// each user namespace for itself, and a private session has one of its own.
void Manager::watch_workspaces(const ProcessTree& tree, std::uint64_t files, std::vector<std::string>& groups) {
  const policy::Limits& most = settings_.workspaces.limits;
  for (const auto& [name, workspace] : workspaces_) {
    if (workspace.get() == default_) continue;
    Entry* largest = nullptr;
    Usage sum;
    std::uint64_t forks = 0;
    std::string pids;
    for (auto& [id, entry] : entries_) {
      if (entry->workspace != workspace.get() || entry->session->state() != State::running) continue;
      const Usage usage = tree.usage(entry->session->pid());
      sum.memory_bytes += usage.memory_bytes;
      sum.processes += usage.processes;
      pids += (pids.empty() ? "" : ",") + std::to_string(entry->session->pid());
      if (usage.processes >= forks) largest = entry.get(), forks = usage.processes;
    }
    if (sum.processes > most.processes) over(*largest, "processes", "workspace_", most.processes, sum);
    else if (!pids.empty() && sum.memory_bytes + files > most.memory_bytes)
      groups.push_back(group("workspace", most.memory_bytes, pids));
  }
}

}  // namespace caisson::session
