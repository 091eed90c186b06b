#include "launcher/gate/service.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/helper.h"
#include "launcher/common/telling/json_text.h"

namespace caisson::gate {
namespace {

constexpr std::int64_t kFirstDelayUs = 50'000, kLongestDelayUs = 10'000'000, kSettledUs = 30'000'000;

}  // namespace

void Service::start() {
  started_us_ = sys::monotonic_us();
  ready_ = false;
  why_.clear();
  auto pair = sys::seqpacket_pair();
  auto running = pair ? confine::start_helper({.file = "caisson-seal",
                                               .argv = {name_, uid_, sys::program_path("caisson-egress"), name_},
                                               .fd3 = pair->second.get()})
                      : std::unexpected(std::move(pair).error());
  if (!running) return exited(running.error().text());
  pid_ = running->pid;
  pidfd_ = std::move(running->pidfd);
  socket_ = std::move(pair->first);
  loop_.on_exit(pid_, [this](const ChildExit& exit) {
    hear();  // what it said last
    exited((exit.signaled ? "signal " : "status ") + std::to_string(exit.status));
  });
  // One message a turn: what it has to say must not keep us from the other, nor from the launcher.
  const auto stirred = [this](std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) orders_.flush();
    if ((events & ~EPOLLOUT) != 0) hear();
  };
  if (const Status watched = loop_.watch(socket_.get(), EPOLLIN, stirred); !watched) return end(watched.error().text());
  orders_.open(socket_.get());
  events_.started();
}

void Service::send(egress::OrderHead order, const std::vector<int>& fds, std::string_view text) {
  if (pid_ == 0) return;
  if (text.size() > egress::kMaxText)
    return events_.unsent(order.workspace, "what the " + std::string(name_) + " is to be told has " +
                                               std::to_string(text.size()) + " bytes, which is too long");
  orders_.message(std::string(reinterpret_cast<const char*>(&order), sizeof order).append(text), fds);
}

void Service::hear() {
  char buffer[sizeof(egress::SaidHead) + egress::kMaxText + 1];
  egress::SaidHead head;
  const ssize_t size = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) return;
  if (size <= 0) return loop_.unwatch(socket_.get());  // the rest follows from its exit
  if (static_cast<std::size_t>(size) < sizeof head) return end("said too little");
  std::memcpy(&head, buffer, sizeof head);
  const std::string_view text(buffer + sizeof head, static_cast<std::size_t>(size) - sizeof head);
  if (text.size() != head.size || head.said < egress::Said::ready || head.said > egress::Said::used)
    return end("said what is no message");
  if (head.said != egress::Said::ready) return events_.said(head.said, head.workspace, text);
  ready_ = true;
  events_.ready();
}

void Service::end(const std::string& why) {
  if (why_.empty()) why_ = why;
  orders_.close();
  loop_.unwatch(socket_.get());
  (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
}

void Service::exited(const std::string& how) {
  JsonText record;
  record.string("process", name_);
  if (pid_ != 0) record.number("pid", pid_);
  record.string("how", how);
  if (!why_.empty()) record.string("why", why_);
  orders_.close();
  if (socket_) loop_.unwatch(socket_.get());
  socket_.reset();
  pidfd_.reset();
  pid_ = 0;
  ready_ = false;
  events_.exited(record.text());
  const bool settled = sys::monotonic_us() - started_us_ > kSettledUs;
  delay_us_ = settled ? kFirstDelayUs : std::clamp(delay_us_ * 2, kFirstDelayUs, kLongestDelayUs);
  loop_.after(delay_us_, [this] { start(); });
}

}  // namespace caisson::gate
