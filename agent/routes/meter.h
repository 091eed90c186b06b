// Meter: counts one request for GET /metrics, when it ends. A request whose handler never ran, because its body did not arrive or
// was refused, is counted as aborted.
#pragma once

#include "agent/http/request.h"
#include "agent/metrics/registry.h"

namespace caisson::routes {

struct Route;

class Meter {
 public:
  Meter(const Route* route, http::Method method);  // nullptr: no row has its path
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // The handler runs from here on. If it ends without an answer, the client gets a 500.
  void begin() { outcome_ = "5xx"; }
  void answered(int status);
  void upgraded();

 private:
  void add(std::string_view outcome);

  const std::string_view route_, method_;  // of the route table, which is constant
  std::string_view outcome_ = "aborted";
  bool timed_ = true, counted_ = false;
  const metrics::Stopwatch watch_;
};

}  // namespace caisson::routes
