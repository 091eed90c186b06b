#include "launcher/pid1/session/denials.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>

#include <cstring>
#include <utility>

#include "launcher/common/base/scm.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/confine/helper.h"
#include "launcher/common/wire/auditor_protocol.h"

namespace caisson::session {
namespace {

using auditor::Head;
using auditor::Type;

constexpr int kReadyMs = 5'000;
constexpr std::int64_t kReleaseUs = 2'000'000, kSettledUs = 10'000'000, kRestartUs = 1'000'000;

json::Value lost(const char* reason) {
  return {{"reason", reason}, {"from_now_on", "refused calls answer ENOSYS (EPERM where paths are observed), without a record"}};
}

// The pid of one of the two, its pidfd, and our end of its socket.
Result<pid_t> fork_child(const char* name, uid_t uid, bool change_uid, Fd& child, Fd& socket) {
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  static_assert(auditor::kSocketFd == 3);
  // Its own filter it loads itself, when it has opened what it needs.
  TRY_ASSIGN(confine::Running running, confine::start_helper({.file = name, .fd3 = pair.second.get(), .before = [=] {
                                                                return confine::give_up(uid, change_uid, -1);
                                                              }}));
  child = std::move(running.pidfd);
  socket = std::move(pair.first);
  return running.pid;
}

}  // namespace

Denials::~Denials() {
  if (pid_ == 0) return;
  loop_.forget_exit(pid_);
  if (socket_) loop_.unwatch(socket_.get());
  (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
}

Status Denials::launch() {
  TRY_ASSIGN(pid_, fork_child("caisson-auditor", uid_, change_uid_, pidfd_, socket_));
  observer_ = false;
  started_us_ = sys::monotonic_us();
  handler_("", audit::Event::auditor_start, {{"pid", pid_}}, false);
  loop_.on_exit(pid_, [this](const ChildExit& exit) { exited(exit); });
  // One message a turn: what a session does must not keep the loop from the others.
  return loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) {
    if (const auto done = read(); !done) {
      loop_.unwatch(socket_.get());
      (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);  // the rest follows from its exit
    }
  });
}

// With our uid, which owns the user namespaces of workspaces, and nothing else: who owns one may read the memory of what lives in
// it, without any capability. It lives as long as the sessions that it serves; the auditor says when it is gone before them.
Status Denials::launch_observer() {
  Fd child, socket;  // the loop reaps it
  TRY(fork_child("caisson-observer", ::geteuid(), false, child, socket));
  const int fd = socket.get();
  TRY(send(auditor::part(Type::observer, "", ""), &fd, 1));
  observer_ = true;
  return {};
}

Status Denials::start() {
  TRY(launch());
  pollfd p{socket_.get(), POLLIN, 0};
  if (::poll(&p, 1, kReadyMs) != 1) return fail(Code::timeout, "caisson-auditor does not answer");
  TRY(read());  // `ready` is what it says first
  return {};
}

Status Denials::send(const std::string& message, const int* fds, std::size_t count) {
  if (pid_ == 0) return fail(Code::unavailable, "the auditor is not running; it is being started again");
  if (scm::send(socket_.get(), message.data(), message.size(), fds, count, MSG_DONTWAIT) < 0)
    return sys_error("send to the auditor");
  return {};
}

Status Denials::watch(const std::string& session, const Fd& listener, const std::string& refusals, bool observe) {
  if (observe && !observer_) TRY(launch_observer());
  const int fd = listener.get();
  TRY(send(auditor::part(Type::watch, session, refusals), &fd, 1));
  if (session.empty()) return {};
  watched_.emplace(session, nullptr);
  if (observe) observed_.insert(session);
  return {};
}

bool Denials::release(const std::string& session, std::function<void()> done) {
  const auto it = watched_.find(session);
  if (it == watched_.end()) return false;
  it->second = std::move(done);
  // Not sent: its listener hangs up with the last process, and the auditor says so by itself.
  (void)send(auditor::part(Type::release, session, ""), nullptr, 0);
  loop_.after(kReleaseUs, [this, session] {
    if (!watched_.contains(session)) return;
    handler_(session, audit::Event::denial_audit_closed, lost("auditor_silent"), true);
    finish(session);
  });
  return true;
}

void Denials::finish(const std::string& session) {
  observed_.erase(session);
  const auto node = watched_.extract(session);
  if (!node.empty() && node.mapped()) node.mapped()();
}

Result<bool> Denials::read() {
  char buffer[auditor::kMaxMessage + 1];
  ssize_t n = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  // Once, where it ended without having read all that we sent; what it said before is still there (unix(7)).
  if (n < 0 && errno == ECONNRESET) n = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) return fail(Code::io, "the auditor is gone");
  if (Status taken = take({buffer, static_cast<std::size_t>(n)}); !taken) return std::unexpected(std::move(taken).error());
  return true;
}

Status Denials::take(std::string_view message) {
  while (!message.empty()) {
    Head head;
    if (message.size() < sizeof head) return fail(Code::protocol, "short part from the auditor");
    std::memcpy(&head, message.data(), sizeof head);
    message.remove_prefix(sizeof head);
    if (head.size > std::min(message.size(), auditor::kMaxText) || head.session[sizeof head.session - 1] != '\0')
      return fail(Code::protocol, "malformed part from the auditor");
    const std::string_view text = message.substr(0, head.size);
    message.remove_prefix(head.size);
    if (!watched_.contains(head.session)) continue;  // `ready`; or given up already, and said so
    TRY_ASSIGN(json::Value fields, json::parse(text, {.max_bytes = auditor::kMaxText, .max_depth = 4, .max_values = 4096}));
    const bool closed = head.type == Type::closed || head.type == Type::ended;
    if (!fields.is_object() || head.type < Type::denial || head.type > Type::path)
      return fail(Code::protocol, "unknown part from the auditor");
    static constexpr audit::Event kEvents[] = {audit::Event::denial, audit::Event::denials_dropped,
                                               audit::Event::denial_audit_closed, audit::Event::session_end,
                                               audit::Event::path_refusal};
    handler_(head.session, kEvents[static_cast<unsigned>(head.type) - static_cast<unsigned>(Type::denial)], std::move(fields),
             closed);
    if (closed) finish(head.session);
  }
  return {};
}

void Denials::exited(const ChildExit& exit) {
  loop_.unwatch(socket_.get());
  for (auto more = read(); more && *more; more = read()) {  // what it said last
  }
  handler_("", audit::Event::auditor_exit, {{"pid", pid_}, {"signaled", exit.signaled}, {"status", exit.status}}, true);
  pid_ = 0;
  pidfd_.reset();
  socket_.reset();
  while (!watched_.empty()) {
    const std::string session = watched_.begin()->first;
    // It may have ended of the observer's death before it read of this session, whose calls nobody answers now.
    const bool observer = exit.status == auditor::kLostObserver && !exit.signaled && observed_.contains(session);
    handler_(session, audit::Event::denial_audit_closed, lost(observer ? "observer_died" : "auditor_died"), true);
    finish(session);
  }
  restart_later();
}

void Denials::restart_later() {
  // Of the last attempt, too: one that fails at once must not be made again at once.
  const std::int64_t now = sys::monotonic_us();
  const bool settled = now - std::exchange(started_us_, now) > kSettledUs;
  loop_.after(settled ? 0 : kRestartUs, [this] {
    const Status done = launch();
    if (done) return;
    sys::say("caisson-launcher: the auditor cannot be started: " + done.error().text());
    restart_later();
  });
}

}  // namespace caisson::session
