#include "agent/routes/meter.h"

#include <algorithm>

#include "agent/routes/route.h"

namespace caisson::routes {
namespace {

std::string_view status_class(int status) {
  static constexpr std::string_view kClasses[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
  return kClasses[std::clamp(status / 100, 1, 5) - 1];
}

}  // namespace

Meter::Meter(const Route* route, http::Method method)
    : route_(route == nullptr ? "none" : route->path), method_(http::method_name(method)) {
  metrics::registry().add(metrics::Id::http_active);
}

Meter::~Meter() {
  if (!counted_) add(outcome_);
  metrics::registry().add(metrics::Id::http_active, {}, -1);
}

void Meter::answered(int status) { add(status_class(status)); }

void Meter::upgraded() {
  timed_ = false;
  add("1xx");
}

void Meter::add(std::string_view outcome) {
  counted_ = true;
  metrics::registry().add(metrics::Id::http_requests, {route_, method_, outcome});
  if (timed_) metrics::registry().observe(metrics::Id::http_duration, {route_}, watch_.elapsed());
}

}  // namespace caisson::routes
