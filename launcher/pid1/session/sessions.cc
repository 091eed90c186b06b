#include "launcher/pid1/session/sessions.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launcher/common/base/session_id.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kRefillDelayUs = 3'000;

}  // namespace

Entry* Sessions::find(const std::string& id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : it->second.get();
}

Result<Entry*> Sessions::find_for(std::uint64_t client, const std::string& id) const {
  Entry* entry = find(id);
  if (entry == nullptr || !clients_.sees(client, entry->owner) || entry->session->state() == State::ended)
    return fail(Code::not_found, "no such session " + quote(id));
  return entry;
}

std::size_t Sessions::count_in(const Workspace& workspace) const {
  return static_cast<std::size_t>(std::ranges::count_if(entries_, [&](const auto& e) {
    return e.second->workspace == &workspace && (e.second->owner != 0 || !workspace.ending.empty());
  }));
}

Result<Entry*> Sessions::start(Workspace& workspace, const std::string& domain, std::shared_ptr<const confine::Template> prepared,
                               const confine::Workspace& place) {
  if (shut_down_) return fail(Code::unavailable, "the launcher is ending");
  const auto given = std::ranges::count_if(entries_, [](const auto& e) { return e.second->owner != 0; });
  if (static_cast<std::size_t>(given) >= host_.settings.max_sessions)
    return fail(Code::limit, "more than " + std::to_string(host_.settings.max_sessions) + " sessions");
  // Sorts by time, which is all that the audit directory is ordered by.
  const auto second = static_cast<std::uint64_t>(sys::realtime_ns() / 1'000'000'000);
  const std::string id = session_id(second << 32 | std::stoul(sys::random_hex(4), nullptr, 16));
  std::optional<confine::Cgroup> cgroup;
  if (host_.cgroups && prepared->plan->cgroup) {
    // caisson-gate reads whose connection it is from the name.
    const std::string way = policy::goes_out(*prepared->plan->policy) ? "." + domain : "";
    TRY_ASSIGN(cgroup, host_.cgroups->make(id + way, prepared->plan->policy->limits, prepared->plan->disks,
                                           workspace.cgroup ? &*workspace.cgroup : nullptr));
  }
  TRY_ASSIGN(const uid_t uid, uids_.take(workspace));
  auto session = Session::start(id, std::move(prepared), host_.builder, place, uid, std::move(cgroup), host_.loop, *this);
  if (!session) {
    uids_.give_back(uid);
    return std::unexpected(std::move(session).error());
  }
  auto entry = std::make_unique<Entry>();
  entry->session = std::move(*session);
  entry->domain = domain;
  entry->workspace = &workspace;
  return entries_.emplace(id, std::move(entry)).first->second.get();
}

Entry* Sessions::ready_entry(const std::string& domain) {
  refill_later(domain);
  for (auto& [id, entry] : entries_)
    // Without PID namespaces others of its uid may have killed it a moment ago.
    if (entry->owner == 0 && entry->domain == domain && entry->session->state() == State::idle &&
        entry->session->check_covers() && (entry->session->plan().pid_ns || !sys::exiting(entry->session->pid())))
      return entry.get();
  return nullptr;
}

void Sessions::refill_all() {
  for (const auto& [name, domain] : domains_.in_force())
    if (domain.prepared) refill_later(name);
}

void Sessions::refill_later(const std::string& domain) {
  if (host_.settings.ready_sessions == 0 || shut_down_) return;
  refill_.insert(domain);
  if (std::exchange(refill_scheduled_, true)) return;
  host_.loop.after(kRefillDelayUs, [this] { refill_scheduled_ = false, refill(); });
}

// One session a turn, so that requests come in between.
void Sessions::refill() {
  while (!refill_.empty()) {
    const std::string name = *refill_.begin();
    const auto ready =
        std::ranges::count_if(entries_, [&name](const auto& e) { return e.second->owner == 0 && e.second->domain == name; });
    const auto domain = domains_.in_force().find(name);
    if (domain == domains_.in_force().end() || !domain->second.prepared || domain->second.prepared->plan->single_use ||
        !domain->second.prepared->plan->protect.empty() ||  // what is there is looked for when somebody comes
        static_cast<std::size_t>(ready) >= host_.settings.ready_sessions) {
      refill_.erase(name);
      continue;
    }
    // Nobody waits for it: a failure shows when somebody asks.
    if (!start(domains_.main(), name, domain->second.prepared, domains_.main().place)) refill_.erase(name);
    else refill_later(name);
    return;
  }
}

Status Sessions::assign(Entry& entry) {
  Session& session = *entry.session;
  const policy::Audit& rules = session.policy().audit;
  const auto bounds = audit::bounded(rules.max_bytes, rules.on_full == policy::OnFull::stderr_);
  TRY_ASSIGN(audit::Log log, audit::Log::create(host_.settings.audit_dir, session.id(), bounds));
  entry.log = std::make_unique<audit::Log>(std::move(log));
  entry.created_at = sys::rfc3339(sys::realtime_ns());
  if (Status written = entry.log->append(audit::Event::session_request, entry.request); !written) {
    // Not even one record: an empty file would only look like a log that somebody emptied.
    (void)::unlink((host_.settings.audit_dir + "/" + session.id() + ".ndjson").c_str());
    entry.log.reset();
    return written;
  }
  logs_.add(session.id());
  if (session.state() != State::idle) return {};
  return entry.log->append_prepared(audit::Event::session_start, std::exchange(entry.start, {}));
}

void Sessions::end_ready(SessionEnd why, const Workspace* workspace, std::string_view domain) {
  for (auto& [id, entry] : entries_)
    if (entry->owner == 0 && (workspace == nullptr || (entry->workspace == workspace && entry->domain == domain)))
      entry->session->end(why);
}

bool Sessions::poll_children() {
  bool more = false;
  for (auto& [id, entry] : entries_)
    if (const State s = entry->session->state(); entry->session->pid() == 0 && (s == State::building || s == State::ending)) {
      entry->session->poll_child();
      more = more || entry->session->pid() == 0;
    }
  return more;
}

void Sessions::shut_down(std::function<void()> done) {
  shut_down_ = std::move(done);
  for (auto& [id, entry] : entries_) entry->session->end("shutdown");
  // Not from inside a signal or an exit: others of the same round may still need a workspace.
  host_.loop.after(0, [this] {
    if (entries_.empty()) shut_down_();
  });
}

}  // namespace caisson::session
