#include "agent/http/failure.h"

#include <string>

#include "agent/http/log.h"

namespace caisson::http {

Response internal_failure(std::string_view what, std::string_view request_id) {
  const std::string id(request_id);
  log::error("request failed, id " + id + ": " + std::string(what));
  return error_response(500, "Internal error (id " + id + ", see the log)");
}

Response internal_failure(const std::exception_ptr& thrown, std::string_view request_id) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return internal_failure(e.what(), request_id);
  } catch (...) {
    return internal_failure("unknown exception", request_id);
  }
}

}  // namespace caisson::http
