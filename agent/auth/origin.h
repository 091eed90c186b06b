// Cross-site protection. Only browsers send Origin; one that names another site than the Host asked for is refused, on plain
// requests and WebSocket upgrades alike. With auth switched off, Host must also be an address, localhost or a listed name.
// Otherwise an attacker could point a name of his own at our address (DNS rebinding): to the browser his page then has our
// origin, so GET carries no Origin and other requests a matching one. Only the name in Host gives it away.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/http/request.h"

namespace caisson::auth {

class OriginRule {
 public:
  // `allowed`: comma-separated origins ("https://app.example"), from CAISSON_ALLOW_ORIGIN. `hosts`: comma-separated names
  // under which this server is called, from CAISSON_ALLOW_HOST; those of the origins are among them.
  OriginRule(std::string_view allowed, bool auth_off, std::string_view hosts = "");

  // Always true with auth on: the key protects then.
  [[nodiscard]] bool knows_host(const http::Request& request) const;
  // An address, localhost or a listed name. It protects where no key is required.
  [[nodiscard]] bool is_own_name(const http::Request& request) const;
  [[nodiscard]] bool permits(const http::Request& request) const;
  // The request's Origin when it is one of the listed: it then gets CORS headers.
  [[nodiscard]] bool is_listed(std::string_view origin) const;
  // The listed origins as sources of a content security policy, separated by spaces. Entries that are not origins are omitted.
  [[nodiscard]] std::string sources() const;

 private:
  [[nodiscard]] bool knows(std::string_view name) const;
  std::vector<std::string> allowed_, hosts_;
  bool auth_off_;
};

}  // namespace caisson::auth
