#include "agent/display/x_link.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>

#include "launcher/common/base/sys.h"

namespace caisson::display {
namespace {

constexpr std::size_t kMessage = 32;                  // bytes of an event, an error, and of a reply's head
constexpr std::size_t kMostEvent = 64 * 1024;         // of a generic event
constexpr std::size_t kReadAtOnce = 256 * 1024;       // then the loop serves others, too
constexpr std::size_t kMostUnsent = 8 * 1024 * 1024;  // a server that reads nothing for so long is given up
constexpr std::size_t kMostPending = 4096;
// The numbers in answers have 16 bits: one answer at least must come for so many requests (X Window System Protocol, section 1).
constexpr std::uint64_t kMostUnanswered = 0x8000;
constexpr std::int64_t kRetryMs = 20;

std::string get_input_focus() { return core_request(XCB_GET_INPUT_FOCUS, xcb_get_input_focus_request_t{}); }

bool wait_for(int fd, short events, std::int64_t deadline_us) {
  const std::int64_t left_ms = (deadline_us - sys::monotonic_us() + 999) / 1000;
  pollfd ready{fd, events, 0};
  return left_ms > 0 && ::poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left_ms, 60'000))) == 1;
}

Result<std::string> receive(int fd, std::size_t size, std::int64_t deadline_us) {
  std::string out(size, '\0');
  for (std::size_t have = 0; have < size;) {
    if (!wait_for(fd, POLLIN, deadline_us)) return fail(Code::timeout, "the X server did not answer in time");
    const ssize_t n = ::recv(fd, out.data() + have, size - have, MSG_DONTWAIT);
    if (n == 0) return fail(Code::io, "the X server closed the connection");
    if (n < 0 && errno != EAGAIN && errno != EINTR) return sys_error("read from the X server");
    have += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  return out;
}

Result<Connected> connect_once(int number, std::int64_t deadline_us) {
  const std::string path = "/tmp/.X11-unix/X" + std::to_string(number);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return sys_error("socket");
  // A full queue of a server that does not accept is EAGAIN here, not a wait (unix(7)).
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return sys_error("connect to " + path);
  const std::string request = setup_request();
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
    return sys_error("write to the X server");
  TRY_ASSIGN(std::string answer, receive(socket.get(), kSetupHead, deadline_us));
  TRY_ASSIGN(const std::string rest, receive(socket.get(), setup_rest(answer), deadline_us));
  TRY_ASSIGN(const Setup setup, parse_setup(answer + rest));
  return Connected{.socket = std::move(socket), .setup = setup};
}

}  // namespace

Result<Connected> connect_display(int number, std::int64_t deadline_us) {
  while (true) {
    auto connected = connect_once(number, deadline_us);
    const bool may_come = !connected && connected.error().sys != 0;
    if (!may_come || sys::monotonic_us() + kRetryMs * 1000 >= deadline_us) return connected;
    (void)::poll(nullptr, 0, kRetryMs);
  }
}

Link::Link(Loop& loop, Connected connected, std::int64_t answer_limit_us, std::function<void(std::string_view)> event,
           std::function<void(const Error&)> broken)
    : loop_(loop),
      socket_(std::move(connected.socket)),
      setup_(connected.setup),
      answer_limit_us_(answer_limit_us),
      event_(std::move(event)),
      broken_(std::move(broken)) {}

Status Link::start() {
  return loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t events) { on_ready(events); });
}

Link::Answer::Answer(Link& link, std::uint64_t number) : link_(link), number_(number) {
  if (number_ == 0) {
    result_ = fail(Code::limit, "the X server takes no more requests");
    return;
  }
  for (auto pending = link_.pending_.rbegin(); pending != link_.pending_.rend(); ++pending)
    if (pending->number == number_) {
      pending->answer = this;
      break;
    }
  timer_ = link_.loop_.after(link_.answer_limit_us_, [this] {
    for (Pending& pending : link_.pending_)
      if (pending.answer == this) pending.answer = nullptr;
    give(fail(Code::timeout, "the X server did not answer in time"));
  });
}

Link::Answer::~Answer() {
  link_.loop_.cancel(timer_);
  for (Pending& pending : link_.pending_)
    if (pending.answer == this) pending.answer = nullptr;
}

void Link::Answer::give(Result<std::string> result) {
  link_.loop_.cancel(timer_);
  result_ = std::move(result);
  if (waiting_) waiting_.resume();
}

void Link::send(std::string request, Fd fd) {
  if (ended_) return;
  ++sent_;
  out_bytes_ += request.size();
  if (out_.empty() || fd || out_.back().bytes.size() > 64 * 1024)
    out_.push_back({.bytes = std::move(request), .fd = std::move(fd)});
  else out_.back().bytes += request;
  if (sent_ - last_expected_ >= kMostUnanswered) {
    expect(kMessage);
    send(get_input_focus());
  }
  if (out_bytes_ > kMostUnsent) return end(Error(Code::limit, "the X server reads nothing"));
  // What is sent in one turn of the loop leaves together.
  if (stuck_since_us_ == 0) {
    stuck_since_us_ = sys::monotonic_us();
    (void)loop_.rewatch(socket_.get(), EPOLLIN | EPOLLOUT);
  }
}

// The number of the request that is sent next, of which an answer is awaited.
std::uint64_t Link::expect(std::size_t most) {
  if (ended_ || pending_.size() >= kMostPending) return 0;
  last_expected_ = sent_ + 1;
  pending_.push_back({.number = sent_ + 1, .most = most, .asked_us = sys::monotonic_us(), .answer = nullptr});
  return sent_ + 1;
}

Link::Answer Link::ask(std::string request, std::size_t most) {
  const std::uint64_t number = expect(std::max(most, kMessage));
  if (number != 0) send(std::move(request));
  return Answer(*this, number);
}

Link::Answer Link::check(std::string request, Fd fd) {
  const std::uint64_t number = pending_.size() + 1 < kMostPending ? expect(0) : 0;
  if (number == 0) return Answer(*this, 0);
  send(std::move(request), std::move(fd));
  // Its reply tells that the request before it had no error.
  expect(kMessage);
  send(get_input_focus());
  return Answer(*this, number);
}

Link::Answer Link::sync() { return ask(get_input_focus(), kMessage); }

Status Link::ready() const {
  const std::int64_t now = sys::monotonic_us();
  if (!pending_.empty() && now - pending_.front().asked_us > answer_limit_us_)
    return fail(Code::timeout, "the X server has not answered for some time");
  if (stuck_since_us_ != 0 && now - stuck_since_us_ > answer_limit_us_)
    return fail(Code::timeout, "the X server has not read for some time");
  return {};
}

void Link::flush() {
  if (!ended_) (void)write_some();
}

void Link::finish(std::int64_t deadline_us) {
  finishing_ = true;
  for (Pending& pending : pending_) pending.answer = nullptr;
  const std::uint64_t last = expect(kMessage);
  send(get_input_focus());
  while (!ended_ && last != 0 && heard_ < last) {
    if (!write_some()) return;
    const short events = out_.empty() ? POLLIN : POLLIN | POLLOUT;
    if (!wait_for(socket_.get(), events, deadline_us) || !read_some()) return;
  }
}

void Link::on_ready(std::uint32_t events) {
  Status done;
  if ((events & EPOLLOUT) != 0) done = write_some();
  if (done && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) done = read_some();
  if (!done) end(done.error());
}

Status Link::write_some() {
  while (!out_.empty()) {
    Chunk& chunk = out_.front();
    iovec bytes{.iov_base = chunk.bytes.data() + chunk.written, .iov_len = chunk.bytes.size() - chunk.written};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (chunk.fd) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      const int fd = chunk.fd.get();
      std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return {};
    if (n < 0) return sys_error("write to the X server");
    chunk.fd.reset();
    chunk.written += static_cast<std::size_t>(n);
    out_bytes_ -= static_cast<std::size_t>(n);
    stuck_since_us_ = sys::monotonic_us();
    if (chunk.written == chunk.bytes.size()) out_.pop_front();
  }
  stuck_since_us_ = 0;
  return loop_.rewatch(socket_.get(), EPOLLIN);
}

Status Link::read_some() {
  const std::size_t had = in_.size();
  ssize_t n = 0;
  in_.resize_and_overwrite(had + kReadAtOnce, [&](char* bytes, std::size_t) {
    // Without room for control data the kernel drops descriptors that a server sends.
    n = ::recv(socket_.get(), bytes + had, kReadAtOnce, MSG_DONTWAIT);
    return had + static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  });
  if (n == 0) return fail(Code::io, "the X server closed the connection");
  if (n < 0) return errno == EAGAIN || errno == EINTR ? Status() : Status(sys_error("read from the X server"));
  std::string_view unread = in_;
  while (!ended_) {
    const std::size_t before = unread.size();
    TRY(take(unread));
    if (unread.size() == before) break;
  }
  in_.erase(0, in_.size() - unread.size());
  if (in_.empty() && in_.capacity() > 1024 * 1024) in_.shrink_to_fit();
  return {};
}

// One message from the front, if all of it is there.
Status Link::take(std::string_view& bytes) {
  if (bytes.size() < kMessage) return {};
  const auto head = read_at<xcb_generic_reply_t>(bytes);
  const std::uint8_t type = head.response_type & 0x7F;
  std::size_t size = kMessage;
  if (type == 1 || type == XCB_GE_GENERIC) size += std::size_t{head.length} * 4;
  if (type == 1) {
    settle_before(heard_ + static_cast<std::uint16_t>(head.sequence - static_cast<std::uint16_t>(heard_)));
    if (pending_.empty() || static_cast<std::uint16_t>(pending_.front().number) != head.sequence)
      return fail(Code::protocol, "the X server answers what was not asked");
    if (size > pending_.front().most)
      return fail(Code::protocol, "the X server sends a reply of " + std::to_string(size) + " bytes");
  } else if (size > kMostEvent) {
    return fail(Code::protocol, "the X server sends an event of " + std::to_string(size) + " bytes");
  }
  if (bytes.size() < size) return {};
  const std::string message(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return dispatch(message);
}

Status Link::dispatch(std::string_view message) {
  const auto head = read_at<xcb_generic_reply_t>(message);
  const std::uint8_t type = head.response_type & 0x7F;
  if (type == XCB_KEYMAP_NOTIFY) return {};  // the one event without a number
  const std::uint64_t number = heard_ + static_cast<std::uint16_t>(head.sequence - static_cast<std::uint16_t>(heard_));
  if (number > sent_) return fail(Code::protocol, "the X server answers what was not asked");
  heard_ = number;
  settle_before(number);
  if (type > 1) {
    if (!finishing_) event_(message);
    return {};
  }
  if (pending_.empty() || pending_.front().number != number) return {};  // an error of a request that nobody asks about
  if (type == 1) give(std::string(message));
  else
    give(fail(Code::io, "the X server refuses a request, with its error " +
                            std::to_string(read_at<xcb_generic_error_t>(message).error_code)));
  return {};
}

void Link::settle_before(std::uint64_t number) {
  while (!pending_.empty() && pending_.front().number < number)
    pending_.front().most == 0 ? give(std::string()) : give(fail(Code::protocol, "the X server left out a reply"));
}

void Link::give(Result<std::string> result) {
  Answer* answer = pending_.front().answer;
  pending_.pop_front();
  if (answer != nullptr) answer->give(std::move(result));
}

void Link::end(const Error& error) {
  if (ended_) return;
  ended_ = true;
  loop_.unwatch(socket_.get());
  broken_(error);
}

}  // namespace caisson::display
