// Sockets: every family, protocol and option by which a session could reach parts of the kernel that it needs not.
#include <linux/filter.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "case.h"

#define HIGH (1L << 32)

static int make(const struct attack* row) { return close_effect((int)CALL(SYS_socket, row->a, row->b, row->c)); }

static int option(const struct attack* row) {
  static struct sock_filter code[] = {{BPF_RET | BPF_K, 0, 0, 0xffff}};
  const struct sock_fprog program = {1, code};
  int fd = socket(row->path != NULL && row->path[0] == '6' ? AF_INET6 : AF_INET, row->path != NULL && strchr(row->path, 'd') ? SOCK_DGRAM : SOCK_STREAM, 0);
  if (fd < 0) return refused();
  const int one = 1;
  const void* value = row->path != NULL && strchr(row->path, 'f') ? (const void*)&program : row->path != NULL && strchr(row->path, 't') ? (const void*)"tls" : &one;
  const socklen_t size = value == &program ? sizeof program : value == &one ? sizeof one : 4;
  if (row->c) {
    const long result = CALL(SYS_setsockopt, fd, row->a, row->b, value, size);
    // Without its module the upper protocol is looked for and not found: the call's own answer.
    return row->c == ENOTCONN && errno == ENOENT ? EFFECT : reached(result, (int)row->c);
  }
  return outcome(CALL(SYS_setsockopt, fd, row->a, row->b, value, size));
}

// Filters on a kind of socket that every session has.
static int unix_filter(const struct attack* row) {
  static struct sock_filter code[] = {{BPF_RET | BPF_K, 0, 0, 0xffff}};
  const struct sock_fprog program = {1, code};
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  return fd < 0 ? undecided("no AF_UNIX socket") : outcome(CALL(SYS_setsockopt, fd, row->a, row->b, &program, sizeof program));
}

static int configure(const struct attack* row) {
  (void)row;
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return refused();
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, "lo");
  if (ioctl(fd, SIOCGIFFLAGS, &request) != 0) return refused();
  request.ifr_flags |= IFF_ALLMULTI;
  return outcome(ioctl(fd, SIOCSIFFLAGS, &request));
}

static int route_message(const struct attack* row) {
  struct {
    struct nlmsghdr head;
    unsigned char family, prefix, flags, scope;
    unsigned index;
    unsigned short length, type;
    unsigned address;
    unsigned short length2, type2;
    unsigned address2;
  } ask = {{sizeof ask, (unsigned short)row->a, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0}, AF_INET, 32, 0, 0, 1, 8, 1, 0x0a0a0a0a, 8, 2, 0x0a0a0a0a};
  struct {
    struct nlmsghdr head;
    int error;
    char rest[256];
  } answer;
  const int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (fd < 0) return refused();
  if (send(fd, &ask, sizeof ask, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0) return refused();
  errno = -answer.error;
  return answer.error == 0 ? EFFECT : refused();
}

#define REFUSED "EPERM EACCES EAFNOSUPPORT EPROTONOSUPPORT ESOCKTNOSUPPORT"
#define NONE .control = "not in this kernel"
#define FAMILY(number, name, type, ...) {"KS-09." name, "make a socket of " name, "/syscalls", "seccomp", REFUSED, make, NULL, number, type, __VA_ARGS__}
#define NETLINK(number, name) {"KS-09.netlink-" name, "make a netlink socket of " name, "/syscalls", "seccomp", REFUSED, make, NULL, AF_NETLINK, SOCK_RAW, number}
#define PROTOCOL(id, what, family, type, protocol, ...) {"KS-10." id, "make a " what, "/syscalls", "seccomp", REFUSED, make, NULL, family, type, protocol, __VA_ARGS__}
#define OPTION(id, what, level, name, kind, ...) {"KS-11." id, what, "/syscalls", "seccomp capabilities", "EPERM EACCES", option, kind, level, name, __VA_ARGS__}

static const struct attack kRows[] = {
    FAMILY(3, "ax25", SOCK_DGRAM, 0, NONE),
    FAMILY(4, "ipx", SOCK_DGRAM, 0, NONE),
    FAMILY(5, "appletalk", SOCK_DGRAM, 0, NONE),
    FAMILY(6, "netrom", SOCK_SEQPACKET, 0, NONE),
    FAMILY(8, "atm-pvc", SOCK_DGRAM, 0, NONE),
    FAMILY(9, "x25", SOCK_SEQPACKET, 0, NONE),
    FAMILY(11, "rose", SOCK_SEQPACKET, 0, NONE),
    FAMILY(12, "decnet", SOCK_SEQPACKET, 0, NONE),
    FAMILY(15, "key", SOCK_RAW, 2, NONE),
    FAMILY(17, "packet", SOCK_RAW, 0),
    FAMILY(17, "packet-datagram", SOCK_DGRAM, 0),
    FAMILY(20, "atm-svc", SOCK_DGRAM, 0, NONE),
    FAMILY(21, "rds", SOCK_SEQPACKET, 0, NONE),
    FAMILY(23, "irda", SOCK_STREAM, 0, NONE),
    FAMILY(24, "pppox", SOCK_STREAM, 0, NONE),
    FAMILY(26, "llc", SOCK_STREAM, 0, NONE),
    FAMILY(27, "infiniband", SOCK_STREAM, 0, NONE),
    FAMILY(28, "mpls", SOCK_STREAM, 0, NONE),
    FAMILY(29, "can", SOCK_RAW, 1, NONE),
    FAMILY(30, "tipc", SOCK_SEQPACKET, 0, NONE),
    FAMILY(31, "bluetooth", SOCK_RAW, 1, NONE),
    FAMILY(32, "iucv", SOCK_STREAM, 0, NONE),
    FAMILY(33, "rxrpc", SOCK_DGRAM, 2, NONE),
    FAMILY(34, "isdn", SOCK_RAW, 0, NONE),
    FAMILY(35, "phonet", SOCK_DGRAM, 0, NONE),
    FAMILY(36, "ieee802154", SOCK_DGRAM, 0, NONE),
    FAMILY(37, "caif", SOCK_STREAM, 0, NONE),
    FAMILY(38, "alg", SOCK_SEQPACKET, 0, NONE),
    FAMILY(39, "nfc", SOCK_SEQPACKET, 1, NONE),
    FAMILY(40, "vsock", SOCK_STREAM, 0, NONE),
    FAMILY(41, "kcm", SOCK_DGRAM, 0, NONE),
    FAMILY(42, "qipcrtr", SOCK_DGRAM, 0, NONE),
    FAMILY(43, "smc", SOCK_STREAM, 0, NONE),
    FAMILY(44, "xdp", SOCK_RAW, 0, NONE),
    FAMILY(45, "mctp", SOCK_DGRAM, 0, NONE),
    {"KS-06.family-high", "make a packet socket, garbage above the family", "/syscalls", "seccomp", REFUSED, make, NULL, 17 | HIGH, SOCK_RAW, 0},
    {"KS-06.type-high", "make a raw socket, garbage above the type", "/syscalls", "seccomp", REFUSED, make, NULL, AF_INET, SOCK_RAW | HIGH, 1},
    {"KS-06.protocol-high", "make an MPTCP socket, garbage above the protocol", "/syscalls", "seccomp", REFUSED, make, NULL, AF_INET, SOCK_STREAM, 262 | HIGH, .control = "not in this kernel"},
    {"KS-06.type-flags", "make a raw socket that does not block", "/syscalls", "seccomp", REFUSED, make, NULL, AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 1},
    NETLINK(4, "sock_diag"),
    {"KS-09.netlink-nflog", "make a netlink socket of nflog", "/syscalls", "seccomp", REFUSED, make, NULL, AF_NETLINK, SOCK_RAW, 5, NONE},
    {"KS-09.netlink-xfrm", "make a netlink socket of xfrm", "/syscalls", "seccomp", REFUSED, make, NULL, AF_NETLINK, SOCK_RAW, 6, NONE},
    {"KS-09.netlink-selinux", "make a netlink socket of selinux", "/syscalls", "seccomp", REFUSED, make, NULL, AF_NETLINK, SOCK_RAW, 7, NONE},
    {"KS-09.netlink-iscsi", "make a netlink socket of iscsi", "/syscalls", "seccomp", REFUSED, make, NULL, AF_NETLINK, SOCK_RAW, 8, NONE},
    // EINVAL: a container engine's own filter, whose ERRNO comes before our listener's answer (seccomp(2), precedence of actions).
    {"KS-09.netlink-audit", "make a netlink socket of audit", "/syscalls", "seccomp", REFUSED " EINVAL", make, NULL, AF_NETLINK, SOCK_RAW, 9, NONE},
    {"KS-09.netlink-fib", "make a netlink socket of fib", "/syscalls", "seccomp", REFUSED, make, NULL, AF_NETLINK, SOCK_RAW, 10, NONE},
    {"KS-09.netlink-connector", "make a netlink socket of connector", "/syscalls", "seccomp", REFUSED, make, NULL, AF_NETLINK, SOCK_RAW, 11, NONE},
    NETLINK(12, "netfilter"),
    NETLINK(15, "uevents"),
    NETLINK(16, "generic"),
    {"KS-09.netlink-rdma", "make a netlink socket of rdma", "/syscalls", "seccomp", REFUSED, make, NULL, AF_NETLINK, SOCK_RAW, 20, NONE},
    {"KS-09.netlink-crypto", "make a netlink socket of crypto", "/syscalls", "seccomp", REFUSED, make, NULL, AF_NETLINK, SOCK_RAW, 21, NONE},
    PROTOCOL("raw-icmp", "raw ICMP socket", AF_INET, SOCK_RAW, 1),
    PROTOCOL("raw-tcp", "raw TCP socket", AF_INET, SOCK_RAW, 6),
    PROTOCOL("raw-any", "socket that writes whole packets", AF_INET, SOCK_RAW, 255),
    PROTOCOL("raw-icmp6", "raw ICMPv6 socket", AF_INET6, SOCK_RAW, 58),
    PROTOCOL("ping", "ping socket", AF_INET, SOCK_DGRAM, 1, .control = "no group may ping here"),
    PROTOCOL("mptcp", "multipath TCP socket", AF_INET, SOCK_STREAM, 262, NONE),
    PROTOCOL("mptcp6", "multipath TCP socket over IPv6", AF_INET6, SOCK_STREAM, 262, NONE),
    PROTOCOL("sctp", "SCTP socket", AF_INET, SOCK_STREAM, 132, NONE),
    PROTOCOL("sctp-packets", "SCTP socket for packets", AF_INET, SOCK_SEQPACKET, 132, NONE),
    PROTOCOL("dccp", "DCCP socket", AF_INET, 6, 33, NONE),
    PROTOCOL("udplite", "UDP-Lite socket", AF_INET, SOCK_DGRAM, 136, NONE),
    PROTOCOL("l2tp", "L2TP socket", AF_INET, SOCK_DGRAM, 115, NONE),
    PROTOCOL("smc", "SMC socket", AF_INET, SOCK_STREAM, 256, NONE),
    PROTOCOL("sock-packet", "socket of the obsolete packet type", AF_INET, SOCK_PACKET, 0x300),
    OPTION("tls", "have the kernel speak TLS", IPPROTO_TCP, 31, "t", ENOTCONN),
    OPTION("repair", "repair a connection", IPPROTO_TCP, 19, NULL),
    OPTION("filter", "filter a socket by a program", SOL_SOCKET, SO_ATTACH_FILTER, "f"),
    OPTION("filter-high", "filter a socket, garbage above the option", SOL_SOCKET, SO_ATTACH_FILTER | HIGH, "f"),
    OPTION("bpf", "filter a socket by a loaded program", SOL_SOCKET, SO_ATTACH_BPF, NULL, EINVAL),
    OPTION("reuseport-filter", "choose sockets by a program", SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, "df", EINVAL),
    OPTION("reuseport-bpf", "choose sockets by a loaded program", SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, "d", EINVAL),
    OPTION("transparent", "answer for every address", IPPROTO_IP, IP_TRANSPARENT, NULL),
    OPTION("mark", "mark packets for other routes", SOL_SOCKET, SO_MARK, NULL),
    OPTION("buffer-force", "take more memory than a socket may", SOL_SOCKET, SO_RCVBUFFORCE, NULL),
    OPTION("debug", "have the kernel log a socket", SOL_SOCKET, SO_DEBUG, NULL),
    {"KS-11.unix-filter", "filter a local socket by a program", "/syscalls", "seccomp", "EPERM", unix_filter, NULL, SOL_SOCKET, SO_ATTACH_FILTER},
    {"KS-11.unix-bpf", "filter a local socket by a loaded program", "/syscalls", "seccomp", "EPERM", unix_filter, NULL, SOL_SOCKET, SO_ATTACH_BPF,
     .control = "needs a program loaded before"},
    {"NW-20.interface", "change an interface", "/network", "net_ns seccomp capabilities", "EPERM", configure, .flags = NET},
    {"NW-20.address", "add an address", "/network", "net_ns capabilities", "EPERM", route_message, NULL, 20, .flags = NET},
};
AREA(sockets_area, "sockets", kRows);
