#include "launcher/pid1/session/logs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>

#include "launcher/common/audit/sweeper.h"
#include "launcher/common/base/session_id.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/confine/helper.h"
#include "launcher/pid1/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kMaxLogsListed = 500, kMaxSegment = 1'000'000'000;
constexpr std::int64_t kSweepUs = 3'600'000'000, kMoreUs = 1'000'000, kFailedUs = 60'000'000;
constexpr std::int64_t kSilentUs = 600'000'000;  // it may have 65,536 logs to look into before its first word

}  // namespace

void Logs::sweep() {
  if (sweeper_) return;  // its end is the time for the next
  std::error_code error;
  // Those of earlier launchers, once: what comes and goes later is known, and 65,536 names take 50 ms to read.
  if (logs_.empty())
    for (std::filesystem::directory_iterator at(host_.settings.audit_dir, error), end; !error && at != end; at.increment(error))
      if (const std::string name = at->path().filename(); name.ends_with(".ndjson"))
        if (const auto number = session_number(name.substr(0, name.size() - 7))) logs_.push_back(number);
  std::ranges::sort(logs_);
  sweep_full_ = std::max<std::uint64_t>(host_.settings.audit_max_bytes / 16, 1);
  if (const Status started = start_sweeper(); !started) {
    sys::say("caisson-launcher: audit logs are not swept: " + started.error().text());
    sweep_in(kFailedUs);
  }
}

// With one that runs: it has said nothing for so long.
void Logs::sweep_in(std::int64_t delay_us) {
  host_.loop.cancel(sweep_timer_);
  sweep_timer_ = host_.loop.after(delay_us, [this] {
    if (!sweeper_) return sweep();
    (void)sys::pidfd_send_signal(sweeper_.get(), SIGKILL);
  });
}

Status Logs::start_sweeper() {
  std::uint64_t days = 1;
  for (const auto& [name, domain] : domains_.in_force()) days = std::max(days, domain.policy->audit.keep_days);
  TRY_ASSIGN(const Fd directory, sys::open(host_.settings.audit_dir, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  TRY_ASSIGN(confine::Running running,
             confine::start_helper({.file = "caisson-logs",
                                    .argv = {std::to_string(days), std::to_string(host_.settings.audit_max_bytes), host_.boot_id},
                                    .in = pair.second.get(),
                                    .fd3 = directory.get()}));
  sweeper_ = std::move(running.pidfd);
  sweeper_socket_ = std::move(pair.first);
  host_.loop.on_exit(running.pid, [this](const ChildExit& exit) {
    const bool more = !exit.signaled && exit.status == audit::kSweepMore, failed = !more && (exit.signaled || exit.status != 0);
    if (failed) sys::say("caisson-launcher: caisson-logs failed; audit logs are swept again in a minute");
    host_.loop.unwatch(sweeper_socket_.get());
    sweeper_socket_.reset();
    sweeper_.reset();
    sweep_in(more ? kMoreUs : failed ? kFailedUs : kSweepUs);
  });
  sweep_in(kSilentUs);
  return host_.loop.watch(sweeper_socket_.get(), EPOLLIN, [this](std::uint32_t) {
    if (hear_sweeper()) return sweep_in(kSilentUs);
    host_.loop.unwatch(sweeper_socket_.get());  // the rest follows from its exit
    (void)sys::pidfd_send_signal(sweeper_.get(), SIGKILL);
  });
}

// One question a turn: what a sweep does must not keep the loop from the others.
Status Logs::hear_sweeper() {
  char buffer[audit::kMaxSweeperMessage];
  const ssize_t size = ::recv(sweeper_socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (size < 1) return fail(Code::io, "caisson-logs is gone");
  TRY_ASSIGN(json::Value fields, json::parse({buffer + 1, static_cast<std::size_t>(size) - 1}));
  TRY_ASSIGN(const std::string file, need_string(fields, "file"));
  const std::string id = file.substr(0, kSessionIdSize);
  const bool root = buffer[0] == audit::kKeepRoot, go = !running_(id);
  if (go) host_.record(root ? audit::Event::log_root : audit::Event::log_deleted, std::move(fields));
  if (go && !root) std::erase(logs_, session_number(id));
  if (::send(sweeper_socket_.get(), go ? "y" : "n", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) return sys_error("answer caisson-logs");
  return {};
}

void Logs::add(const std::string& session) {
  const std::uint64_t number = session_number(session);
  logs_.insert(std::ranges::lower_bound(logs_, number), number);
}

void Logs::wrote(std::uint64_t bytes) {
  if (sweep_full_ -= std::min(sweep_full_, bytes); sweep_full_ == 0) sweep();
}

Result<json::Value> Logs::list(const std::string& before, std::int64_t most) const {
  const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(most, 1, kMaxLogsListed));
  json::Value list = json::Value::array();
  const std::uint64_t first = before.empty() ? ~0ULL : session_number(before);
  if (first == 0) return fail(Code::invalid_argument, "'before' is not a session's id");
  for (auto at = std::ranges::lower_bound(logs_, first); at != logs_.begin() && list.size() < count;) {
    const std::string id = session_id(*--at);
    list.push_back({{"session", id}, {"running", running_(id)}});
  }
  return list;
}

Result<Fd> Logs::open(const std::string& session, std::int64_t segment) const {
  if (segment < 0 || segment > kMaxSegment) return fail(Code::invalid_argument, "'segment' is out of range");
  if (!std::ranges::binary_search(logs_, session_number(session)))
    return fail(Code::not_found, "no log of session " + quote(session, 64));
  const std::string suffix = segment == 0 ? "" : audit::segment_suffix(static_cast<unsigned>(segment));
  return sys::open(host_.settings.audit_dir + "/" + session + suffix + ".ndjson", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
}

}  // namespace caisson::session
