#include "agent/http/failure.h"

#include <string>

#include "agent/http/log.h"
#include "launcher/base/sys.h"

namespace caisson::http {

Response internal_failure(std::string_view what) {
  const std::string id = sys::random_hex(6);
  log::error("request failed, id " + id + ": " + std::string(what));
  return error_response(500, "Internal error (id " + id + ", see the log)");
}

Response internal_failure(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return internal_failure(e.what());
  } catch (...) {
    return internal_failure("unknown exception");
  }
}

}  // namespace caisson::http
