#include "agent/auth/unauthorized.h"

namespace caisson::auth {

http::Response unauthorized(bool given) {
  http::Response refusal =
      http::error_response(401, given ? "Unauthorized: wrong API key"
                                      : "Unauthorized: send the API key as X-AIO-API-Key, Authorization: Bearer or ?api_key=");
  refusal.headers = {{"www-authenticate", "Bearer realm=\"caisson\""}};
  return refusal;
}

}  // namespace caisson::auth
