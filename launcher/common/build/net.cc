#include "launcher/common/build/net.h"

#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>

#include <cerrno>
#include <memory>

namespace caisson::confine {
namespace {

struct FreeSocket {
  void operator()(nl_sock* s) const { nl_socket_free(s); }
};
struct PutLink {
  void operator()(rtnl_link* l) const { rtnl_link_put(l); }
};
using Link = std::unique_ptr<rtnl_link, PutLink>;

}  // namespace

int loopback_up() {
  const std::unique_ptr<nl_sock, FreeSocket> socket(nl_socket_alloc());
  if (!socket) return ENOMEM;
  if (nl_connect(socket.get(), NETLINK_ROUTE) < 0) return errno != 0 ? errno : EPROTONOSUPPORT;
  rtnl_link* found = nullptr;
  if (rtnl_link_get_kernel(socket.get(), 0, "lo", &found) < 0) return ENODEV;
  const Link lo(found), change(rtnl_link_alloc());
  if (!change) return ENOMEM;
  rtnl_link_set_flags(change.get(), IFF_UP);
  if (rtnl_link_change(socket.get(), lo.get(), change.get(), 0) < 0) return EPERM;
  rtnl_link* again = nullptr;
  if (rtnl_link_get_kernel(socket.get(), 0, "lo", &again) < 0) return ENODEV;
  const Link after(again);
  return (rtnl_link_get_flags(after.get()) & IFF_UP) != 0 ? 0 : EIO;
}

}  // namespace caisson::confine
