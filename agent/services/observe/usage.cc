#include "agent/services/observe/usage.h"

#include <algorithm>

#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

constexpr std::int64_t kRowsOfOne = 16;  // asked of each session

std::int64_t number(const json::Value& object, const char* key) {
  const auto value = json::get_int(object, key);
  return value && *value ? std::max<std::int64_t>(**value, 0) : 0;
}
std::string text(const json::Value& object, const char* key) {
  auto value = json::get_string(object, key);
  return value && *value ? std::move(**value) : std::string();
}
double percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

std::size_t Sample::bytes() const {
  return sizeof *this + disk.size() * sizeof(DiskUse) + processes.size() * (sizeof(ProcessUse) + 32) +
         sessions.size() * (sizeof(SessionUse) + 32);
}

task<Sample> Meter::take(std::shared_ptr<Meter> self, Looked at) {
  std::vector<json::Value> sessions;
  std::string after;
  do {
    CO_TRY_ASSIGN(json::Value page, co_await self->launcher_.session_list(std::move(after), at.processes ? kRowsOfOne : 0));
    after = text(page, "next");
    for (json::Value& one : page["sessions"])
      if (one.is_object() && text(one, "workspace") == self->workspace_) sessions.push_back(std::move(one));
  } while (!after.empty());
  CO_TRY_ASSIGN(const std::vector<json::Value> workspaces, co_await self->launcher_.workspace_list());
  // Nothing is awaited from here on, so that two concurrent samples do not mix their state.
  Sample sample;
  sample.captured_ns = sys::realtime_ns();
  const std::int64_t now_us = sys::monotonic_us();
  self->next_cpu_us_.clear();
  self->next_process_us_.clear();
  for (const json::Value& one : sessions) self->add(one, now_us, sample);
  const auto mine = std::ranges::find(workspaces, self->workspace_, [](const json::Value& w) { return text(w, "name"); });
  if (mine == workspaces.end()) co_return fail(Code::not_found, "the workspace has ended");
  self->add_workspace(*mine, at, sample);
  self->finish(now_us, sample);
  co_return sample;
}

void Meter::add(const json::Value& one, std::int64_t now_us, Sample& sample) {
  SessionUse use{.session_id = text(one, "session"),
                 .domain = text(one, "domain"),
                 .processes = number(one, "processes"),
                 .memory_bytes = number(one, "memory_bytes"),
                 .cpu_usec = number(one, "cpu_us")};
  if (const auto limits = one.find("limits"); limits != one.end() && limits->is_object()) {
    use.process_limit = number(*limits, "processes");
    use.memory_limit = number(*limits, "memory_bytes");
  }
  // Without a cgroup, the time of a process that has ended but was not reaped yet is missing for a moment.
  if (const auto before = cpu_us_.find(use.session_id); before != cpu_us_.end())
    use.cpu_usec = std::max(use.cpu_usec, before->second);
  next_cpu_us_[use.session_id] = use.cpu_usec;
  sample.total.mem_current_bytes += use.memory_bytes;
  if (one.contains("oom_kills")) sample.total.oom_kill = sample.total.oom_kill.value_or(0) + number(one, "oom_kills");
  if (const auto rows = one.find("top"); rows != one.end() && rows->is_array())
    add_processes(*rows, use.session_id, now_us, sample);
  sample.sessions.push_back(std::move(use));
}

void Meter::add_processes(const json::Value& rows, const std::string& session, std::int64_t now_us, Sample& sample) {
  for (const json::Value& row : rows) {
    // [pid, name, state, threads, memory, processor time, age]: launcher/pid1/session/answers.cc
    if (!row.is_array() || row.size() != 7 || !row[1].is_string() || !row[2].is_string()) continue;
    const auto at = [&row](std::size_t i) { return row[i].is_number_integer() ? row[i].get<std::int64_t>() : 0; };
    ProcessUse use{.pid = at(0), .user = user_, .comm = row[1].get<std::string>(), .rss_bytes = at(4)};
    use.rss_mib = static_cast<double>(use.rss_bytes) / (1 << 20);
    use.uptime_sec = static_cast<double>(std::max<std::int64_t>(at(6), 0)) / 1e6;
    use.threads = at(3);
    use.state = row[2].get<std::string>();
    use.session_id = session;
    const std::string key = session + "/" + std::to_string(use.pid);
    const std::int64_t cpu_us = at(5);
    next_process_us_[key] = cpu_us;
    if (const auto before = process_us_.find(key); before != process_us_.end() && now_us > before_us_)
      use.cpu_pct = percent(std::max<std::int64_t>(cpu_us - before->second, 0), now_us - before_us_);
    sample.processes.push_back(std::move(use));
  }
}

void Meter::add_workspace(const json::Value& one, Looked at, Sample& sample) const {
  if (const auto limits = one.find("limits"); limits != one.end() && limits->is_object()) {
    sample.total.mem_max_bytes = number(*limits, "memory_bytes");
    sample.total.mem_usage_pct = percent(sample.total.mem_current_bytes, *sample.total.mem_max_bytes);
  }
  const auto disk = one.find("disk");
  if (!at.disk || disk == one.end() || !disk->is_object() || disk->empty()) return;
  DiskUse use{.path = one.value("home", launcher_.greeting().home),
              .used_bytes = number(*disk, "bytes"),
              .total_bytes = number(*disk, "total_bytes"),
              .free_bytes = number(*disk, "free_bytes")};
  use.usage_pct = percent(use.used_bytes, use.total_bytes);
  use.inode_used = number(*disk, "inodes");
  use.inode_total = number(*disk, "total_inodes");
  use.inode_usage_pct = percent(*use.inode_used, *use.inode_total);
  sample.disk.push_back(std::move(use));
}

void Meter::finish(std::int64_t now_us, Sample& sample) {
  std::int64_t total = 0;
  for (const auto& [session, us] : cpu_us_)
    if (!next_cpu_us_.contains(session)) ended_us_ += us;
  for (const auto& [session, us] : next_cpu_us_) total += us;
  total += ended_us_;
  sample.total.cpu_usage_usec = total;
  if (before_us_ != 0 && now_us > before_us_) {
    // A new session began at zero, or was prepared before the first sample: its use belongs to this span, or is small.
    sample.total.cpu_usage_pct = percent(std::max<std::int64_t>(total - total_us_, 0), now_us - before_us_);
  }
  before_us_ = now_us;
  total_us_ = total;
  cpu_us_.swap(next_cpu_us_);
  process_us_.swap(next_process_us_);
  std::ranges::sort(sample.processes, std::ranges::greater{}, &ProcessUse::rss_bytes);
  if (sample.processes.size() > kMostRows) sample.processes.resize(kMostRows);
}

}  // namespace caisson::services
