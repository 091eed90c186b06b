// Spans as OTLP's JSON (opentelemetry-proto, "JSON Protobuf Encoding": names in lowerCamelCase, ids in hexadecimal, numbers of 64
// bits as strings).
#pragma once

#include <string>
#include <string_view>

#include "agent/traces/span.h"

namespace caisson::traces {

// The span and its children, with a comma between each.
[[nodiscard]] std::string spans_text(const Span& span);
// How many spans that is.
[[nodiscard]] inline std::uint32_t count_spans(const Span& span) { return static_cast<std::uint32_t>(1 + span.children.size()); }
// A whole request of one service; spans: texts of spans_text() with a comma between each.
[[nodiscard]] std::string request_text(std::string_view service, std::string_view spans);

}  // namespace caisson::traces
