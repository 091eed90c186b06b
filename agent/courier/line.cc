#include "agent/courier/line.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace caisson::courier {

Line::Line(asio::any_io_executor executor, Fd socket) : socket_(std::move(executor), socket.release()) {
  boost::system::error_code ignored;  // every call is MSG_DONTWAIT
  socket_.non_blocking(true, ignored);
}

task<Message> Line::receive() {
  for (;;) {
    std::string buffer(kMaxMessage + 1, '\0');
    const ssize_t size = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      auto [error] = co_await socket_.async_wait(asio::posix::stream_descriptor::wait_read, as_values);
      if (error) co_return asio_error("wait for the line", error);
      continue;
    }
    if (size < 0) co_return sys_error("receive from the line");
    if (size == 0) co_return fail(Code::io, "the line is closed");
    if (static_cast<std::size_t>(size) < sizeof(Head) || static_cast<std::size_t>(size) > kMaxMessage)
      co_return fail(Code::protocol, "a message of a wrong size");
    Message out;
    std::memcpy(&out.head, buffer.data(), sizeof(Head));
    out.text = buffer.substr(sizeof(Head), static_cast<std::size_t>(size) - sizeof(Head));
    co_return out;
  }
}

Status Line::try_send(Head head, std::string_view text) {
  iovec parts[] = {{&head, sizeof head}, {const_cast<char*>(text.data()), text.size()}};
  const msghdr message{.msg_iov = parts, .msg_iovlen = 2};
  if (text.size() > kMaxText) return fail(Code::limit, "a message that is too large");
  if (::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return {};
  if (errno == EAGAIN || errno == ENOBUFS) return fail(Code::limit, "the line is full");
  return sys_error("send over the line");
}

task<void> Line::send(Head head, std::string text) {
  for (;;) {
    Status sent = try_send(head, text);
    if (sent || sent.error().code != Code::limit || text.size() > kMaxText) co_return sent;
    auto [error] = co_await socket_.async_wait(asio::posix::stream_descriptor::wait_write, as_values);
    if (error) co_return asio_error("wait for the line", error);
  }
}

}  // namespace caisson::courier
