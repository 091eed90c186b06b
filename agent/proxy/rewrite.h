// The headers of an app's answer as the client gets them: without what ends at this hop or would act on our whole origin, with
// addresses and cookies brought below the app's prefix. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "agent/http/request.h"
#include "agent/proxy/destination.h"

namespace caisson::proxy {

// host: under which the client asked.
[[nodiscard]] http::Pairs headers_for_client(const http::Pairs& headers, const Destination& from, std::string_view host);
[[nodiscard]] std::string location_for_client(std::string_view value, const Destination& from, std::string_view host);
// "": the cookie is not passed on.
[[nodiscard]] std::string cookie_for_client(std::string_view value, const Destination& from);

}  // namespace caisson::proxy
