// Cross-site protection. Only browsers send Origin; one that names another site than the Host asked for is refused, on
// plain requests and WebSocket upgrades alike. With auth switched off, Host must also be an address or localhost then: a
// page of an attacker whose name was rebound to our address has matching Origin and Host, but a foreign name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/http/request.h"

namespace caisson::auth {

class OriginRule {
 public:
  // `allowed`: comma-separated origins ("https://app.example"), from CAISSON_ALLOW_ORIGIN.
  OriginRule(std::string_view allowed, bool auth_off);

  [[nodiscard]] bool permits(const http::Request& request) const;
  // The request's Origin when it is one of the listed: it then gets CORS headers.
  [[nodiscard]] bool is_listed(std::string_view origin) const;

 private:
  std::vector<std::string> allowed_;
  bool auth_off_;
};

}  // namespace caisson::auth
