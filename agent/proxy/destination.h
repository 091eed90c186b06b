// Which requests are for a server in the workspace, and for which port: by the header x-aio-proxy-port, by the first label of
// Host, or by the path. A port has one spelling, and the bytes as sent decide, so no other spelling of a request reaches a port.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/http/request.h"
#include "launcher/common/base/result.h"

namespace caisson::proxy {

struct Destination {
  std::uint16_t port = 0;
  std::string prefix;     // below which clients see the app ("/proxy/8091"); "": the app has all paths
  bool stripped = false;  // the app does not see the prefix
  std::string path;       // for the app, as sent, without the query
  bool lacks_slash = false;
  std::string workspace;  // that the name says: {port}-{workspace}.{domain}; "": none
};

// The names that stand for ports: {port}-{domain} and {port}-{anything}.{domain}. Below a listed domain, and below localhost,
// which needs no list, `anything` is the workspace to which a browser's cookies of that name belong.
class PreviewHosts {
 public:
  // `domains`: comma-separated. "": every name whose first label is a port, a hyphen and more, and no address with hyphens. But
  // none if auth is off: then a page of an attacker could have such a name (DNS rebinding). "none": no name.
  PreviewHosts(std::string_view domains, bool auth_off);
  // The digits of such a name; "" for any other.
  [[nodiscard]] std::string_view digits_of(std::string_view host) const;
  // The workspace of such a name, in lower case; "": it says none.
  [[nodiscard]] std::string workspace_of(std::string_view host) const;
  // Whether the Host is below one of the listed domains.
  [[nodiscard]] bool lists(std::string_view host) const { return !any_ && !digits_of(host).empty(); }

 private:
  std::vector<std::string> domains_;
  bool any_ = false;
};

// nullopt: the request is not for the proxy. Code::invalid_argument: it is, but names no port.
[[nodiscard]] Result<std::optional<Destination>> destination_of(const http::Request& head, const PreviewHosts& hosts);

}  // namespace caisson::proxy
