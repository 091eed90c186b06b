#include "launcher/common/ipc/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "launcher/common/base/scm.h"

namespace caisson::ipc {

static_assert(kMaxFds <= scm::kMaxFds);

Status send(int socket, const json::Value& body, std::span<const int> fds) {
  if (fds.size() > kMaxFds) return fail(Code::internal, "more descriptors than a message may carry");
  const std::string text = json::dump(body);
  if (text.size() > kMaxMessage) return fail(Code::limit, "message over " + std::to_string(kMaxMessage) + " bytes");

  ssize_t n;
  do n = scm::send(socket, text.data(), text.size(), fds.data(), fds.size());
  while (n < 0 && errno == EINTR);
  if (n < 0) return sys_error("sendmsg");
  return {};
}

namespace {

// A message of no bytes reads like the end of the connection; only the latter is one.
bool hung_up(int socket) {
  pollfd p{socket, POLLRDHUP, 0};
  return ::poll(&p, 1, 0) != 0;
}

}  // namespace

Result<std::optional<Message>> receive(int socket, Wait wait) {
  // Too large for a stack frame. Of each thread: tests run both ends in one process.
  static thread_local std::array<char, kMaxMessage + 1> buffer;
  scm::Received came;
  do came = scm::receive(socket, buffer.data(), buffer.size(), wait == Wait::no ? MSG_DONTWAIT : 0);
  while (came.size < 0 && errno == EINTR);
  const ssize_t n = came.size;
  if (n < 0 && wait == Wait::no && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  if (n < 0) return sys_error("recvmsg");

  Message message;
  // Owned at once, so that none stays open whatever else is wrong.
  message.fds = std::vector<Fd>(came.fds, came.fds + came.count);
  // The kernel cuts silently: a cut message would otherwise be parsed as a different, valid one.
  if ((came.flags & MSG_TRUNC) != 0) return fail(Code::protocol, "message over the size limit");
  if ((came.flags & MSG_CTRUNC) != 0 || came.count > kMaxFds) return fail(Code::protocol, "message with too many descriptors");
  if (n == 0 && message.fds.empty() && hung_up(socket)) return fail(Code::not_found, "peer closed the connection");
  if (n == 0) return fail(Code::protocol, "empty message");
  auto body = json::parse({buffer.data(), static_cast<std::size_t>(n)}, {.max_bytes = kMaxMessage});
  if (!body) return fail(Code::protocol, "message is not strict JSON: " + body.error().what);
  if (!body->is_object()) return fail(Code::protocol, "message is not an object");
  message.body = std::move(*body);
  return message;
}

}  // namespace caisson::ipc
