#include "agent/courier/destinations.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "agent/http/target.h"
#include "agent/http/token.h"

namespace caisson::courier {
namespace {

std::string_view value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

constexpr std::string_view kTracesPath = "/v1/traces";
constexpr std::size_t kMaxHeaders = 16 * 1024, kMostHeaders = 32;
constexpr std::int64_t kLongestMs = 60'000;

// That of traces alone, or the general one.
std::string_view value_of(const char* own, const char* general) {
  const std::string_view value = value_of(own);
  return value.empty() ? value_of(general) : value;
}

// A header's value, percent-encoded. nullopt: it is not, or has a control character.
std::optional<std::string> header_value(std::string_view text) {
  auto out = http::percent_decoded(http::trim(text));
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  return out && std::ranges::none_of(*out, is_control) ? std::move(out) : std::nullopt;
}

Result<std::chrono::milliseconds> parse_limit(std::string_view text) {
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size() || ms < 1 || ms > kLongestMs)
    return fail(Code::invalid_argument, "must be a number of milliseconds from 1 to 60000");
  return std::chrono::milliseconds(ms);
}

Result<std::optional<Collector>> collector_from_env() {
  TRY_ASSIGN(auto url, traces_url(value_of("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), value_of("OTEL_EXPORTER_OTLP_ENDPOINT")));
  if (!url) return std::optional<Collector>();
  Collector out{.url = std::move(*url)};
  auto headers = parse_headers(value_of("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"));
  if (!headers) return std::unexpected(std::move(headers).error().wrap("OTEL_EXPORTER_OTLP_HEADERS"));
  out.headers = std::move(*headers);
  const std::string_view limit = value_of("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT");
  if (limit.empty()) return std::optional(std::move(out));
  auto parsed = parse_limit(limit);
  if (!parsed) return std::unexpected(std::move(parsed).error().wrap("OTEL_EXPORTER_OTLP_TIMEOUT"));
  out.limit = *parsed;
  return std::optional(std::move(out));
}

}  // namespace

Result<std::optional<Url>> traces_url(std::string_view own, std::string_view general) {
  if (own.empty() && general.empty()) return std::optional<Url>();
  auto url = parse_url(own.empty() ? general : own);
  if (!url) return std::unexpected(std::move(url).error().wrap("OTEL_EXPORTER_OTLP_ENDPOINT"));
  if (!own.empty()) return std::optional(std::move(*url));
  if (url->target.contains('?'))
    return fail(Code::invalid_argument, "OTEL_EXPORTER_OTLP_ENDPOINT: must be an address without a query");
  while (url->target.ends_with('/')) url->target.pop_back();
  url->target += kTracesPath;
  return std::optional(std::move(*url));
}

Result<std::vector<std::pair<std::string, std::string>>> parse_headers(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  if (text.size() > kMaxHeaders) return fail(Code::invalid_argument, "must be at most 16 KiB");
  while (!text.empty()) {
    const std::string_view one = http::trim(text.substr(0, text.find(',')));
    text.remove_prefix(std::min(text.find(','), text.size() - 1) + 1);
    if (one.empty()) continue;
    const std::size_t equals = one.find('=');
    const std::string_view name = http::trim(one.substr(0, equals));
    auto value = equals == std::string_view::npos ? std::nullopt : header_value(one.substr(equals + 1));
    if (!http::is_token(name) || !value || out.size() >= kMostHeaders)
      return fail(Code::invalid_argument, "must be at most 32 headers as name=value, with commas between them");
    out.emplace_back(name, std::move(*value));
  }
  return out;
}

Result<Destinations> destinations_from_env() {
  Destinations out;
  if (const std::string_view keys = value_of("CAISSON_JWKS_URL"); !keys.empty()) {
    auto url = parse_url(keys);
    if (!url) return std::unexpected(std::move(url).error().wrap("CAISSON_JWKS_URL"));
    out.keys = std::move(*url);
  }
  TRY_ASSIGN(out.collector, collector_from_env());
  return out;
}

}  // namespace caisson::courier
