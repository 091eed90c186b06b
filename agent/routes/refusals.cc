#include "agent/routes/refusals.h"

namespace caisson::routes {

Result<http::Response> refusal(const Error& error) {
  switch (error.code) {
    case Code::invalid_argument: {
      Issues issues;
      issues.add(json::Value::array({"body"}), "value_error", error.what);
      return validation_response(issues);
    }
    case Code::not_found:
      return http::error_response(404, error.what);
    case Code::already_exists:
      return http::error_response(409, error.what);
    case Code::permission_denied:
    case Code::unavailable:  // the policy or the machine does not give it: trying again is useless
      return http::error_response(403, error.what);
    case Code::limit:
      return http::error_response(429, error.what);
    default:
      return std::unexpected(error);
  }
}

}  // namespace caisson::routes
