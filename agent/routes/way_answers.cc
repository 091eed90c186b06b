#include "agent/routes/way_answers.h"

namespace caisson::routes {

Result<http::Response> way_refusal(const Error& error) {
  switch (error.code) {
    case Code::invalid_argument: {
      Issues issues;
      issues.add(json::Value::array({"body"}), "value_error", error.what);
      return validation_response(issues);
    }
    case Code::not_found:
      return http::error_response(404, error.what);
    case Code::permission_denied:
    case Code::unavailable:
      return http::error_response(403, error.what);
    case Code::limit:
      return http::error_response(429, error.what);
    default:
      return std::unexpected(error);
  }
}

}  // namespace caisson::routes
