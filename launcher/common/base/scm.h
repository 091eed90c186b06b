// Descriptors over UNIX sockets (SCM_RIGHTS, unix(7)): the one place that lays out control messages. Async-signal-safe, no
// allocation, so that caisson-init and the children between clone and exec can use it as well.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>

namespace caisson::scm {

inline constexpr std::size_t kMaxFds = 8;

struct Buffer {
  alignas(cmsghdr) char bytes[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
};

// Adds `count` (at most kMaxFds) descriptors to a message to be sent; `buffer` must live until then.
inline void put(msghdr& header, Buffer& buffer, const int* fds, std::size_t count) {
  if (count == 0) return;
  header.msg_control = buffer.bytes;
  header.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(c), fds, count * sizeof(int));
}

// One message, with `count` descriptors: as sendmsg(2), never SIGPIPE.
[[nodiscard]] inline ssize_t send(int socket, const void* data, std::size_t size, const int* fds, std::size_t count,
                                  int flags = 0) {
  iovec part{const_cast<void*>(data), size};
  msghdr header{.msg_iov = &part, .msg_iovlen = 1};
  Buffer control;
  put(header, control, fds, count);
  return ::sendmsg(socket, &header, MSG_NOSIGNAL | flags);
}

// What came with one message. All of `fds` are the receiver's, to be owned or closed whatever else is wrong with the message.
struct Received {
  ssize_t size = 0;  // as recvmsg(2)
  int flags = 0;     // MSG_TRUNC, MSG_CTRUNC: it was cut, and is not what the peer sent
  int fds[kMaxFds] = {};
  std::size_t count = 0;
  [[nodiscard]] bool cut() const { return (flags & (MSG_TRUNC | MSG_CTRUNC)) != 0; }
};

// Makes room for descriptors before recvmsg. More than kMaxFds show as MSG_CTRUNC.
inline void expect(msghdr& header, Buffer& buffer) {
  header.msg_control = buffer.bytes;
  header.msg_controllen = sizeof buffer.bytes;
}

// Every descriptor that came, to be owned or closed by the caller whatever else is wrong with the message.
[[nodiscard]] inline std::size_t take(msghdr& header, int (&fds)[kMaxFds]) {
  std::size_t count = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < here && count < kMaxFds; ++i)
      std::memcpy(&fds[count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
  }
  return count;
}

// One message; the descriptors are close-on-exec.
[[nodiscard]] inline Received receive(int socket, void* data, std::size_t size, int flags = 0) {
  iovec part{data, size};
  msghdr header{.msg_iov = &part, .msg_iovlen = 1};
  Buffer control;
  expect(header, control);
  Received out;
  out.size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | flags);
  if (out.size < 0) return out;
  out.flags = header.msg_flags;
  out.count = take(header, out.fds);
  return out;
}

}  // namespace caisson::scm
