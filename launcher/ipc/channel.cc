#include "launcher/ipc/channel.h"

#include <sys/socket.h>

#include <array>
#include <cstring>

namespace caisson::ipc {

Status send(int socket, const json::Value& body, std::span<const int> fds) {
  if (fds.size() > kMaxFds) return fail(Code::internal, "more descriptors than a message may carry");
  const std::string text = json::dump(body);
  if (text.size() > kMaxMessage) return fail(Code::limit, "message over " + std::to_string(kMaxMessage) + " bytes");

  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  ssize_t n;
  do n = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  if (n < 0) return sys_error("sendmsg");
  return {};
}

namespace {

// Takes every descriptor out of the control data, so that none stays open unowned whatever else is wrong.
std::vector<Fd> take_fds(msghdr& header) {
  std::vector<Fd> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

Result<std::optional<Message>> receive(int socket, Wait wait) {
  static std::array<char, kMaxMessage + 1> buffer;  // single-threaded users only; too large for a stack frame
  iovec part{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
  header.msg_control = control;
  header.msg_controllen = sizeof control;

  ssize_t n;
  do n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (wait == Wait::no ? MSG_DONTWAIT : 0));
  while (n < 0 && errno == EINTR);
  if (n < 0 && wait == Wait::no && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  if (n < 0) return sys_error("recvmsg");

  Message message;
  message.fds = take_fds(header);
  // The kernel cuts silently: a cut message would otherwise be parsed as a different, valid one.
  if ((header.msg_flags & MSG_TRUNC) != 0) return fail(Code::protocol, "message over the size limit");
  if ((header.msg_flags & MSG_CTRUNC) != 0) return fail(Code::protocol, "message with too many descriptors");
  if (n == 0) return fail(Code::not_found, "peer closed the connection");
  auto body = json::parse({buffer.data(), static_cast<std::size_t>(n)}, {.max_bytes = kMaxMessage});
  if (!body) return fail(Code::protocol, "message is not strict JSON: " + body.error().what);
  if (!body->is_object()) return fail(Code::protocol, "message is not an object");
  message.body = std::move(*body);
  return message;
}

}  // namespace caisson::ipc
