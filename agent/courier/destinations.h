// Where caisson-courier may go: the operator's variables, which the launcher hands to it (launcher/common/ipc/agent_settings.h).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/courier/url.h"

namespace caisson::courier {

// Where traces go (OpenTelemetry's specification, "OpenTelemetry Protocol Exporter"). A variable for traces alone goes before the
// general one.
struct Collector {
  Url url;  // OTEL_EXPORTER_OTLP_TRACES_ENDPOINT as it is, or OTEL_EXPORTER_OTLP_ENDPOINT with /v1/traces
  std::vector<std::pair<std::string, std::string>> headers = {};  // OTEL_EXPORTER_OTLP_TRACES_HEADERS, OTEL_EXPORTER_OTLP_HEADERS
  std::chrono::milliseconds limit{10'000};                        // OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, OTEL_EXPORTER_OTLP_TIMEOUT
};

struct Destinations {
  std::optional<Url> keys;  // CAISSON_JWKS_URL
  std::optional<Collector> collector;
};

// The address of the collector in these two values, of which the first goes before the second; both empty: none.
[[nodiscard]] Result<std::optional<Url>> traces_url(std::string_view own, std::string_view general);
// "name=value,name=value", values percent-encoded. Names are tokens, values visible characters and spaces.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> parse_headers(std::string_view text);

// Code::invalid_argument: which variable is wrong, and why. The values are not repeated.
[[nodiscard]] Result<Destinations> destinations_from_env();

}  // namespace caisson::courier
