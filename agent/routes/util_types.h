// Request of /v1/util, by the contract's name.
#pragma once

#include <string>

#include "agent/routes/schema.h"

namespace caisson::routes {

struct UtilConvertToMarkdownRequest {
  std::string uri;
};

template <>
struct Schema<UtilConvertToMarkdownRequest> {
  static constexpr std::string_view name = "UtilConvertToMarkdownRequest";
  static constexpr auto fields =
      std::tuple{field("uri", &UtilConvertToMarkdownRequest::uri,
                       "What to convert: a URI of http, https, file or data, or a path; a relative one starts at the home")};
};

}  // namespace caisson::routes
