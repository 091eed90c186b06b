#include "agent/routes/refuse.h"

#include "agent/auth/unauthorized.h"
#include "agent/http/log.h"
#include "agent/services/common/counted.h"

namespace caisson::routes {
namespace {

// A refusal that is delayed holds a connection that gives way to none. Beyond these it comes at once; the number of guesses is
// bounded all the same (auth/failures.h).
constexpr std::size_t kMaxDelayed = 128;
std::size_t g_delayed = 0;

}  // namespace

asio::awaitable<http::Response> refuse(auth::Gate& gate, std::string sender, auth::Gate::Refusal why) {
  if (why == auth::Gate::Refusal::limited) {
    http::Response later = http::error_response(429, "Too many wrong credentials came from this address");
    later.headers = {{"retry-after", "60"}};
    co_return later;
  }
  const bool given = why == auth::Gate::Refusal::wrong;
  const auth::Failures::Verdict verdict = gate.failures.record(sender, auth::Failures::Clock::now(), given);
  if (verdict.log) log::warn((given ? "wrong credential from " : "request without a credential from ") + sender);
  if (given && verdict.delay.count() > 0 && g_delayed < kMaxDelayed) {
    const services::Counted counted(g_delayed);
    co_await sleep_for(verdict.delay);
  }
  co_return auth::unauthorized(given);
}

std::optional<http::Response> refuse_powerless(const auth::Principal& principal) {
  if (!principal.bounds.scopes.empty()) return std::nullopt;
  return http::error_response(403, "Forbidden: the credential has no scope of this server");
}

bool is_secure(const http::Request& request) {
  return request.scheme == "https" || request.header("x-forwarded-proto") == "https" ||
         request.header("origin").value_or("").starts_with("https://");
}

}  // namespace caisson::routes
