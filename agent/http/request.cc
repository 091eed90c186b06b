#include "agent/http/request.h"

#include <algorithm>
#include <array>

#include "agent/http/token.h"

namespace caisson::http {
namespace {

constexpr std::array<std::pair<Method, std::string_view>, 7> kMethods{{{Method::get, "GET"},
                                                                       {Method::head, "HEAD"},
                                                                       {Method::post, "POST"},
                                                                       {Method::put, "PUT"},
                                                                       {Method::patch, "PATCH"},
                                                                       {Method::del, "DELETE"},
                                                                       {Method::options, "OPTIONS"}}};

std::optional<std::string_view> find(const Pairs& pairs, std::string_view name) {
  for (const auto& [key, value] : pairs)
    if (key == name) return value;
  return std::nullopt;
}

}  // namespace

std::string_view method_name(Method method) {
  for (const auto& [value, name] : kMethods)
    if (value == method) return name;
  return "OTHER";
}

Method method_from(std::string_view name) {
  for (const auto& [value, known] : kMethods)
    if (known == name) return value;
  return Method::other;
}

std::optional<std::string_view> Request::header(std::string_view name) const { return find(headers, name); }

std::size_t Request::count_of(std::string_view header) const {
  return static_cast<std::size_t>(std::ranges::count_if(headers, [&](const auto& one) { return one.first == header; }));
}
std::optional<std::string_view> Request::query_value(std::string_view name) const { return find(query, name); }
std::string_view Request::param(std::string_view name) const { return find(params, name).value_or(""); }

bool Request::accepts_event_stream() const {
  for (const auto& [name, value] : headers) {
    if (name != "accept") continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view range = rest.substr(0, comma);
      if (same_ignoring_case(trim(range.substr(0, range.find(';'))), "text/event-stream")) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

}  // namespace caisson::http
