// OAuth 2.0 Protected Resource Metadata (RFC 9728): tells clients of MCP the issuer of the tokens that /mcp takes. It
// is served only if CAISSON_JWT_ISSUER names that issuer.
#pragma once

#include "agent/http/request.h"
#include "agent/http/response.h"

namespace caisson::routes {

// Adds to the refusal of a request to /mcp or /v1/mcp where the metadata is (RFC 9728, section 5.1); others stay as they are.
// error: of RFC 6750, section 3.1; "": the request had no credential.
void add_challenge(http::Response& refusal, const http::Request& head, std::string_view error);

}  // namespace caisson::routes
