#include "launcher/pid1/session/watchdog.h"

#include <algorithm>

#include "launcher/common/base/sys.h"

namespace caisson::session {
namespace {

// One that caisson-homes is asked about: "label/limit/pid,pid".
std::string group(const std::string& label, std::uint64_t limit, const std::string& pids) {
  return label + "/" + std::to_string(limit) + "/" + pids;
}

// Ends a session that is over a limit of its own or of its workspace; usage: of all that counts.
void over(Entry& entry, LimitHit limit, std::uint64_t allowed, const Usage& usage) {
  const bool forked = limit.text.ends_with("processes");
  (void)entry.log->append(
      audit::Event::limit_hit,
      {{"limit", limit.text}, {"processes", usage.processes}, {"memory_bytes", usage.memory_bytes}, {"by", "watchdog"}});
  json::Value hit{{"allowed", allowed}, {"figure", forked ? usage.processes : usage.memory_bytes}};
  if (limit.text.starts_with("workspace_")) hit["limit"] = std::string(limit.text) + (forked ? "" : "_bytes");
  entry.session->end(forked ? SessionEnd("processes") : SessionEnd("memory"), std::move(hit));
}

constexpr std::int64_t kWatchdogUs = 500'000, kCoversUs = 1'000'000;

}  // namespace

void Watchdog::start() {
  if (!host_.cgroups) watch();
  watch_covers();
}

const ProcessTree& Watchdog::processes() {
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
void Watchdog::watch() {
  host_.loop.after(kWatchdogUs, [this] { watch(); });
  if (std::ranges::none_of(sessions_.all(), [](const auto& e) { return e.second->session->state() == State::running; })) return;
  const ProcessTree& tree = processes();
  const std::uint64_t files = ProcessTree::files_in_memory();
  std::vector<std::string> groups;
  for (const auto& [id, entry] : sessions_.all()) {
    const Session& session = *entry->session;
    if (session.state() != State::running) continue;
    const Usage usage = tree.usage(session.pid());
    const policy::Limits& limits = session.policy().limits;
    // A fork bomb is over its processes, and its memory is not asked for.
    if (usage.processes > limits.processes) over(*entry, "processes", limits.processes, usage);
    else if (usage.memory_bytes + files > limits.memory_bytes)
      groups.push_back(group(id, limits.memory_bytes, std::to_string(session.pid())));
  }
  watch_workspaces(tree, files, groups);
  weigh(std::move(groups));
}

// caisson-homes looks, for it takes time: thousands of processes may have to be asked.
void Watchdog::weigh(std::vector<std::string> groups) {
  if (groups.empty() || weighing_) return;
  weighing_ = true;
  groups.insert(groups.begin(), "weigh");
  host_.homes->run(host_.loop, std::move(groups), [this](const Result<json::Value>& told) {
    weighing_ = false;
    if (!told) return sys::say("caisson-launcher: memory of sessions cannot be counted: " + told.error().text());
    for (const auto& label : told->value("unread", json::Value::array()))
      if (Entry* entry = sessions_.find(label.get<std::string>())) entry->unread = true;
    for (const auto& one : told->value("over", json::Value::array())) {
      const auto largest = one.value("largest", 0);
      const auto it = std::ranges::find_if(sessions_.all(), [&](const auto& e) {
        return e.second->session->pid() == largest && e.second->session->state() == State::running;
      });
      if (it == sessions_.all().end()) continue;
      Entry& entry = *it->second;
      const bool alone = it->first == one.value("label", "");  // else all of its workspace
      Usage usage = processes().usage(largest);
      usage.memory_bytes = one.value("bytes", std::uint64_t{0});
      over(entry, alone ? LimitHit("memory") : LimitHit("workspace_memory"),
           alone ? entry.session->policy().limits.memory_bytes : host_.settings.workspaces.limits.memory_bytes, usage);
    }
  });
}

// Who replaces a hidden file outside takes its cover away in every session, and no rule of the kernel's keeps it.
void Watchdog::watch_covers() {
  host_.loop.after(kCoversUs, [this] { watch_covers(); });
  for (const auto& [id, entry] : sessions_.all()) (void)entry->session->check_covers();
}

// The sessions of a workspace together: when they are over, the largest has to go. Processes the kernel counts by uid, but in
// each user namespace for itself, and a private session has one of its own.
void Watchdog::watch_workspaces(const ProcessTree& tree, std::uint64_t files, std::vector<std::string>& groups) {
  struct Together {
    Entry* largest = nullptr;
    Usage sum = {};
    std::uint64_t forks = 0;
    std::string pids = {};
  };
  std::map<std::string, Together> workspaces;
  for (const auto& [id, entry] : sessions_.all()) {
    if (entry->workspace->is_default() || entry->session->state() != State::running) continue;
    Together& all = workspaces[entry->workspace->name];
    const Usage usage = tree.usage(entry->session->pid());
    all.sum.memory_bytes += usage.memory_bytes;
    all.sum.processes += usage.processes;
    all.pids += (all.pids.empty() ? "" : ",") + std::to_string(entry->session->pid());
    if (usage.processes >= all.forks) all.largest = entry.get(), all.forks = usage.processes;
  }
  const policy::Limits& most = host_.settings.workspaces.limits;
  for (const auto& [name, all] : workspaces) {
    if (all.sum.processes > most.processes) over(*all.largest, "workspace_processes", most.processes, all.sum);
    else if (all.sum.memory_bytes + files > most.memory_bytes) groups.push_back(group("workspace", most.memory_bytes, all.pids));
  }
}

}  // namespace caisson::session
