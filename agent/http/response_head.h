// The head of a response as bytes. Private to agent/http.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/http/event_stream.h"
#include "agent/http/response.h"

namespace caisson::http {

struct HeadOptions {
  int minor_version = 1;
  bool keep_alive = true;
  std::optional<std::uint64_t> content_length = {};  // nullopt: chunked on HTTP/1.1, until close on 1.0
  std::string_view request_id = {};
};

// A header with CR, LF or NUL in its value (or anything but a token as its name) is left out: no response splitting.
[[nodiscard]] std::string relayed_head(const RelayedHead& head, const HeadOptions& options);
[[nodiscard]] std::string response_head(const Response& response, const HeadOptions& options);

}  // namespace caisson::http
