// Network: what is reachable. A connection, or a datagram that a decoy received, is an effect; a route alone is none.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "case.h"

static socklen_t address(const char* text, long port, struct sockaddr_storage* out) {
  struct sockaddr_in* v4 = (struct sockaddr_in*)out;
  struct sockaddr_in6* v6 = (struct sockaddr_in6*)out;
  memset(out, 0, sizeof *out);
  if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET, v4->sin_port = htons((uint16_t)port);
    return sizeof *v4;
  }
  inet_pton(AF_INET6, text, &v6->sin6_addr);
  v6->sin6_family = AF_INET6, v6->sin6_port = htons((uint16_t)port);
  return sizeof *v6;
}

static int connect_within(int fd, const void* to, socklen_t size) {
  fcntl(fd, F_SETFL, O_NONBLOCK);
  if (connect(fd, to, size) == 0) return EFFECT;
  if (errno != EINPROGRESS) return refused();
  struct pollfd wait = {fd, POLLOUT, 0};
  if (poll(&wait, 1, 4000) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

// a: the port, or 0 for the decoy's, -1 for the launcher's own server.
static int tcp(const struct attack* row) {
  struct sockaddr_storage to;
  const long port = row->a > 0 ? row->a : decoy_number(row->a == 0 ? "tcp" : row->a == -1 ? "api" : "private_tcp");
  if (port <= 0) return undecided("the decoy is missing");
  const char* text = row->path != NULL ? row->path : decoy("host_ip");
  if (text == NULL) return undecided("the decoy is missing");
  const socklen_t size = address(text, port, &to);
  const int fd = socket(to.ss_family, SOCK_STREAM, (int)row->b);
  return fd < 0 ? refused() : connect_within(fd, &to, size);
}

static int fast_open(const struct attack* row) {
  struct sockaddr_storage to;
  const socklen_t size = address("127.0.0.1", decoy_number("tcp"), &to);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  (void)row;
  return fd < 0 ? refused() : outcome(sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr*)&to, size));
}
static int fast_open_message(const struct attack* row) {
  struct sockaddr_storage to;
  const socklen_t size = address("127.0.0.1", decoy_number("tcp"), &to);
  struct iovec data = {"x", 1};
  struct mmsghdr message = {.msg_hdr = {&to, size, &data, 1, NULL, 0, 0}};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return refused();
  return outcome(row->a ? sendmmsg(fd, &message, 1, MSG_FASTOPEN) : sendmsg(fd, &message.msg_hdr, MSG_FASTOPEN));
}

// The decoy answers what it receives.
static int udp(const struct attack* row) {
  struct sockaddr_storage to;
  const long port = row->a > 0 ? row->a : decoy_number("udp");
  const socklen_t size = address(row->path, port, &to);
  const int fd = socket(to.ss_family, SOCK_DGRAM, 0), one = 1;
  if (fd < 0) return refused();
  if (row->b) setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof one);
  // Connected, so that a refusal is told.
  if (row->a == 0 && connect(fd, (struct sockaddr*)&to, size) != 0) return refused();
  if (sendto(fd, "escape", 6, 0, row->a == 0 ? NULL : (struct sockaddr*)&to, row->a == 0 ? 0 : size) < 0) return refused();
  if (row->b) return EFFECT;
  struct pollfd wait = {fd, POLLIN, 0};
  char answer[16];
  if (poll(&wait, 1, 2000) <= 0) return ETIMEDOUT;
  return outcome(recv(fd, answer, sizeof answer, 0));
}

static int abstract(const struct attack* row) {
  const char* name = decoy(row->path);
  if (name == NULL) return undecided("the decoy is missing");
  struct sockaddr_un to = {AF_UNIX, ""};
  strncpy(to.sun_path + 1, name, sizeof to.sun_path - 2);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
  const int fd = socket(AF_UNIX, (int)row->a, 0);
  if (fd < 0) return refused();
  if (row->a == SOCK_DGRAM && row->b) return outcome(sendto(fd, "escape", 6, 0, (struct sockaddr*)&to, size));
  return outcome(connect(fd, (struct sockaddr*)&to, size));
}

// Listens while whoever looks from outside connects: reached from there, it could take a service's place.
static int serve(const struct attack* row) {
  struct sockaddr_storage at;
  const socklen_t size = address(row->path, decoy_number("free_port"), &at);
  const int fd = socket(at.ss_family, SOCK_STREAM, 0), one = 1;
  if (fd < 0) return refused();
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, (struct sockaddr*)&at, size) != 0 || listen(fd, 8) != 0) return refused();
  struct pollfd wait = {fd, POLLIN, 0};
  return poll(&wait, 1, 2000) > 0 ? EFFECT : ECONNREFUSED;
}
static int low_port(const struct attack* row) {
  struct sockaddr_storage at;
  const socklen_t size = address("127.0.0.1", row->a, &at);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  return fd < 0 ? refused() : outcome(bind(fd, (struct sockaddr*)&at, size));
}

static int table_lists(const struct attack* row) {
  char line[512], wanted[16];
  FILE* table = fopen(row->path, "r");
  if (table == NULL) return refused();
  const char* text = row->a ? decoy("abstract") : wanted;
  snprintf(wanted, sizeof wanted, ":%04lX ", decoy_number("tcp"));
  int result = ENOENT;
  while (result != EFFECT && fgets(line, sizeof line, table) != NULL)
    if (text != NULL && strstr(line, text) != NULL) result = EFFECT;
  fclose(table);
  return result;
}

#define WAY "net_ns seccomp"
#define NOWHERE "ENETUNREACH EPERM EACCES EADDRNOTAVAIL EHOSTUNREACH"
#define CLOSED "ECONNREFUSED EPERM EACCES"
#define INTERNET(id, what, to, port) {"NW-" id, "connect to " what, "/network", WAY, NOWHERE, tcp, to, port, .flags = NET}
#define PACKET(id, what, to, port) {"NW-" id, "send a datagram to " what, "/network", WAY, NOWHERE, udp, to, port, .flags = NET}
#define HOST(id, what, fn, ...) {"NW-" id, what, "/network", WAY, CLOSED, fn, __VA_ARGS__}

static const struct attack kRows[] = {
    INTERNET("01.internet", "an address of the Internet", "1.1.1.1", 80),
    INTERNET("01.internet-tls", "an address of the Internet, port 443", "93.184.216.34", 443),
    INTERNET("01.internet6", "an address of the Internet over IPv6", "2606:4700:4700::1111", 443),
    INTERNET("03.metadata", "the metadata service", "169.254.169.254", 80),
    INTERNET("03.metadata-ecs", "the metadata of containers", "169.254.170.2", 80),
    INTERNET("03.metadata-alibaba", "another cloud's metadata", "100.100.100.200", 80),
    INTERNET("03.metadata-azure", "another cloud's wire server", "168.63.129.16", 80),
    INTERNET("03.metadata-oracle", "another cloud's metadata address", "192.0.0.192", 80),
    INTERNET("03.metadata6", "the metadata service over IPv6", "fd00:ec2::254", 80),
    INTERNET("03.kubelet", "a kubelet", "10.0.0.1", 10250),
    INTERNET("03.kubernetes", "a cluster's API", "10.96.0.1", 443),
    INTERNET("03.docker-bridge", "the engine's bridge", "172.17.0.1", 2375),
    INTERNET("03.home-router", "a router", "192.168.1.1", 80),
    INTERNET("05.nat64", "loopback by NAT64", "64:ff9b::7f00:1", 80),
    INTERNET("05.6to4", "loopback by 6to4", "2002:7f00:1::1", 80),
    INTERNET("05.mapped", "an IPv4 address written as IPv6", "::ffff:1.1.1.1", 80),
    INTERNET("05.unique-local", "a local address of IPv6", "fd12:3456::1", 80),
    INTERNET("07.smtp", "a mail server", "192.0.2.25", 25),
    INTERNET("07.ssh", "a remote shell", "192.0.2.22", 22),
    PACKET("13.dns", "a name server", "8.8.8.8", 53),
    PACKET("13.quic", "a web server over QUIC", "1.1.1.1", 443),
    PACKET("13.ntp", "a time server", "192.0.2.123", 123),
    PACKET("25.dns6", "a name server over IPv6", "2001:4860:4860::8888", 53),
    {"NW-25.broadcast", "send to everybody", "/network", WAY, NOWHERE, udp, "255.255.255.255", 9, 1, .flags = NET},
    {"NW-25.multicast", "send to a group", "/network", WAY, NOWHERE, udp, "224.0.0.251", 5353, 1, .flags = NET},
    {"NW-25.multicast6", "send to a group over IPv6", "/network", WAY, NOWHERE " EINVAL", udp, "ff0e::1", 5353, 1, .flags = NET},
    HOST("02.loopback", "connect to a server of the host", tcp, "127.0.0.1"),
    HOST("02.loopback-other", "connect to it by another loopback address", tcp, "127.9.9.9"),
    HOST("02.loopback6", "connect to it by ::1", tcp, "::1"),
    HOST("02.mapped", "connect to it by a mapped address", tcp, "::ffff:127.0.0.1"),
    HOST("02.zero", "connect to it by 0.0.0.0", tcp, "0.0.0.0"),
    HOST("02.zero6", "connect to it by ::", tcp, "::"),
    {"NW-02.host-address", "connect to it by the host's address", "/network", WAY, NOWHERE " ECONNREFUSED", tcp, NULL,
     .control = "the host has no address"},
    HOST("02.api", "connect to the launcher's API", tcp, "127.0.0.1", -1, .control = "no agent answers"),
    {"NW-02.private-session", "connect to a server of a private session", "/network", "", CLOSED, tcp, "127.0.0.1", -2, .residual = "loopback-shared"},
    HOST("02.udp", "send to a server of the host", udp, "127.0.0.1"),
    HOST("02.udp6", "send to a server of the host over IPv6", udp, "::1"),
    HOST("17.mptcp", "connect past Landlock by multipath TCP", tcp, "127.0.0.1", 0, 262, .control = "not in this kernel"),
    HOST("17.fast-open", "connect past Landlock by a first datum", fast_open, NULL),
    HOST("17.fast-open-message", "connect past Landlock by a message", fast_open_message, NULL),
    HOST("17.fast-open-messages", "connect past Landlock by several messages", fast_open_message, NULL, 1),
    {"NW-18.serve", "serve on all of the host's addresses", "/network", WAY, CLOSED, serve, "0.0.0.0", .flags = ALONE},
    {"NW-18.serve-loopback", "serve on the host's loopback", "/network", WAY, CLOSED, serve, "127.0.0.1", .flags = ALONE},
    {"NW-18.serve6", "serve on all of the host's IPv6 addresses", "/network", WAY, CLOSED, serve, "::", .flags = ALONE},
    {"NW-18.low-port", "take a privileged port", "/network", "net_ns seccomp capabilities", CLOSED, low_port, NULL, 81, .flags = NET},
    {"NW-19.abstract", "connect to an abstract socket of the host", "/network", "net_ns landlock", CLOSED, abstract, "abstract", SOCK_STREAM, .residual = "landlock-no-scopes"},
    {"NW-19.abstract-datagram", "send to an abstract socket of the host", "/network", "net_ns landlock", CLOSED, abstract, "abstract_datagram", SOCK_DGRAM, 1, .residual = "landlock-no-scopes"},
    {"NW-29.tcp", "find the host's servers in /proc/net/tcp", "/network", "net_ns", "ENOENT EACCES", table_lists, "/proc/net/tcp", .residual = "namespaces-shared"},
    {"NW-29.unix", "find the host's sockets in /proc/net/unix", "/network", "net_ns", "ENOENT EACCES", table_lists, "/proc/net/unix", 1, .residual = "namespaces-shared"},
};
AREA(network_area, "network", kRows);
