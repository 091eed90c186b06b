// Which sessions have logs, who may read them, and caisson-logs, which decides what must go and deletes it. It asks before each
// deletion: what we say yes to is on record then, and what runs stays. The loop never waits for it; without it nothing goes.
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>

#include "launcher/audit/sweeper.h"
#include "launcher/base/session_id.h"
#include "launcher/base/sys.h"
#include "launcher/confine/helper.h"
#include "launcher/session/manager.h"
#include "launcher/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kMaxLogsListed = 500, kMaxSegment = 1'000'000'000;
constexpr std::int64_t kSweepUs = 3'600'000'000, kMoreUs = 1'000'000, kFailedUs = 60'000'000;
constexpr std::int64_t kSilentUs = 600'000'000;  // it may have 65,536 logs to look into before its first word

}  // namespace

// At the start, every hour, and when a sixteenth of the room has been written since.
void Manager::sweep() {
  if (sweeper_) return;  // its end is the time for the next
  std::error_code error;
  // Those of earlier launchers, once: what comes and goes later is known, and 65,536 names take 50 ms to read.
  if (logs_.empty())
    for (std::filesystem::directory_iterator at(settings_.audit_dir, error), end; !error && at != end; at.increment(error))
      if (const std::string name = at->path().filename(); name.ends_with(".ndjson"))
        if (const auto number = session_number(name.substr(0, name.size() - 7))) logs_.push_back(number);
  std::ranges::sort(logs_);
  sweep_full_ = std::max<std::uint64_t>(settings_.audit_max_bytes / 16, 1);
  if (const Status started = start_sweeper(); !started) {
    sys::say("caisson-launcher: audit logs are not swept: " + started.error().text());
    sweep_in(kFailedUs);
  }
}

// With one that runs: it has said nothing for so long.
void Manager::sweep_in(std::int64_t delay_us) {
  loop_.cancel(sweep_timer_);
  sweep_timer_ = loop_.after(delay_us, [this] {
    if (!sweeper_) return sweep();
    (void)sys::pidfd_send_signal(sweeper_.get(), SIGKILL);
  });
}

Status Manager::start_sweeper() {
  std::uint64_t days = 1;
  for (const auto& [name, domain] : domains_) days = std::max(days, domain.policy->audit.keep_days);
  TRY_ASSIGN(const Fd directory, sys::open(settings_.audit_dir, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  TRY_ASSIGN(
      confine::Running running,
      confine::start_helper({.file = "caisson-logs",
                             .argv = {"caisson-logs", std::to_string(days), std::to_string(settings_.audit_max_bytes), boot_id_},
                             .in = pair.second.get(),
                             .fd3 = directory.get()}));
  sweeper_ = std::move(running.pidfd);
  sweeper_socket_ = std::move(pair.first);
  loop_.on_exit(running.pid, [this](const ChildExit& exit) {
    const bool more = !exit.signaled && exit.status == audit::kSweepMore, failed = !more && (exit.signaled || exit.status != 0);
    if (failed) sys::say("caisson-launcher: caisson-logs failed; audit logs are swept again in a minute");
    loop_.unwatch(sweeper_socket_.get());
    sweeper_socket_.reset();
    sweeper_.reset();
    sweep_in(more ? kMoreUs : failed ? kFailedUs : kSweepUs);
  });
  sweep_in(kSilentUs);
  return loop_.watch(sweeper_socket_.get(), EPOLLIN, [this](std::uint32_t) {
    if (hear_sweeper()) return sweep_in(kSilentUs);
    loop_.unwatch(sweeper_socket_.get());  // the rest follows from its exit
    (void)sys::pidfd_send_signal(sweeper_.get(), SIGKILL);
  });
}

// One question a turn: what a sweep does must not keep the loop from the others.
Status Manager::hear_sweeper() {
  char buffer[audit::kMaxSweeperMessage];
  const ssize_t size = ::recv(sweeper_socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (size < 1) return fail(Code::io, "caisson-logs is gone");
  TRY_ASSIGN(json::Value fields, json::parse({buffer + 1, static_cast<std::size_t>(size) - 1}));
  TRY_ASSIGN(const std::string file, need_string(fields, "file"));
  const std::string id = file.substr(0, kSessionIdSize);
  const bool root = buffer[0] == audit::kKeepRoot, go = !entries_.contains(id);
  if (go) record(root ? audit::Event::log_root : audit::Event::log_deleted, std::move(fields));
  if (go && !root) std::erase(logs_, session_number(id));
  if (::send(sweeper_socket_.get(), go ? "y" : "n", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) return sys_error("answer caisson-logs");
  return {};
}

// Logs are not a client's own: who may ask for them may read those of all sessions, and of none but sessions.
Result<json::Value> Manager::answer_audit_list(ipc::Connection&, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"before", "limit"}));
  TRY_ASSIGN(const auto before, json::get_string(request.body, "before"));
  TRY_ASSIGN(const auto limit, json::get_int(request.body, "limit"));
  const auto most = static_cast<std::size_t>(std::clamp<std::int64_t>(limit.value_or(100), 1, kMaxLogsListed));
  json::Value list = json::Value::array();
  const std::uint64_t first = before.value_or("").empty() ? ~0ULL : session_number(*before);
  if (first == 0) return fail(Code::invalid_argument, "'before' is not a session's id");
  for (auto at = std::ranges::lower_bound(logs_, first); at != logs_.begin() && list.size() < most;) {
    const std::string id = session_id(*--at);
    list.push_back({{"session", id}, {"running", entries_.contains(id)}});
  }
  return json::Value{{"sessions", std::move(list)}};
}

Result<json::Value> Manager::answer_audit_open(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"session", "segment"}));
  TRY_ASSIGN(const std::string id, need_string(request.body, "session"));
  TRY_ASSIGN(const auto segment, json::get_int(request.body, "segment"));
  if (segment && (*segment < 0 || *segment > kMaxSegment)) return fail(Code::invalid_argument, "'segment' is out of range");
  if (!std::ranges::binary_search(logs_, session_number(id))) return fail(Code::not_found, "no log of session " + quote(id, 64));
  const std::string suffix = segment.value_or(0) == 0 ? "" : audit::segment_suffix(static_cast<unsigned>(*segment));
  std::vector<Fd> fds;
  TRY_ASSIGN(fds.emplace_back(),
             sys::open(settings_.audit_dir + "/" + id + suffix + ".ndjson", O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  c.reply(request.id, {{"running", entries_.contains(id)}}, std::move(fds));
  return json::Value();  // answered, with the descriptor
}

}  // namespace caisson::session
