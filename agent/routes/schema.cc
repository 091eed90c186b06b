#include "agent/routes/schema.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace caisson::routes {
namespace {

constexpr std::size_t kMaxIssues = 50;

// 1, not 1.0, as in pydantic's messages and schemas.
json::Value number(double v) {
  if (v == std::floor(v) && std::abs(v) < 1e15) return static_cast<std::int64_t>(v);
  return v;
}
std::string number_text(double v) { return json::dump(number(v)); }

void check_range(double v, const Bounds& bounds, const json::Value& loc, Issues& issues) {
  if (bounds.min && v < *bounds.min) issues.add_below(loc, *bounds.min);
  if (bounds.above && v <= *bounds.above)
    issues.add(loc, "greater_than", "Input should be greater than " + number_text(*bounds.above));
  if (bounds.max && v > *bounds.max)
    issues.add(loc, "less_than_equal", "Input should be less than or equal to " + number_text(*bounds.max));
}

std::string plural(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

// 'a', 'b' or 'c'
std::string choices(std::span<const std::string_view> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out.append("'").append(names[i]).append("'");
  }
  return out;
}

std::size_t code_points(std::string_view utf8) {
  return static_cast<std::size_t>(std::ranges::count_if(utf8, [](char c) { return (c & '\xc0') != '\x80'; }));
}

}  // namespace

void Issues::add_below(const json::Value& loc, double least) {
  add(loc, "greater_than_equal", "Input should be greater than or equal to " + number_text(least));
}

void Issues::add(const json::Value& loc, std::string_view type, std::string_view msg) {
  if (detail_.size() >= kMaxIssues) return;  // an array of 10,000 wrong items must not make a 10,000 times larger answer
  detail_.push_back({{"loc", loc}, {"msg", msg}, {"type", type}});
}

namespace schema {

json::Value below(const json::Value& loc, json::Value step) {
  json::Value out = loc;
  out.push_back(std::move(step));
  return out;
}

std::string title_of(std::string_view field_name) {
  std::string out(field_name);
  bool start = true;
  for (char& c : out) {
    if (c == '_') c = ' ';
    else if (start) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    start = c == ' ';
  }
  return out;
}

void decode_string(const json::Value& in, const Bounds& bounds, const json::Value& loc, std::string& out, Issues& issues) {
  if (!in.is_string()) return issues.add(loc, "string_type", "Input should be a valid string");
  out = in.get<std::string>();
  const std::size_t length = bounds.min_length || bounds.max_length ? code_points(out) : 0;
  if (bounds.min_length && length < *bounds.min_length)
    issues.add(loc, "string_too_short", "String should have at least " + plural(*bounds.min_length, "character"));
  if (bounds.max_length && length > *bounds.max_length)
    issues.add(loc, "string_too_long", "String should have at most " + plural(*bounds.max_length, "character"));
  if (!bounds.one_of.empty() && std::ranges::find(bounds.one_of, std::string_view(out)) == bounds.one_of.end())
    issues.add(loc, "literal_error", "Input should be " + choices(bounds.one_of));
}

void decode_bool(const json::Value& in, const json::Value& loc, bool& out, Issues& issues) {
  if (!in.is_boolean()) return issues.add(loc, "bool_type", "Input should be a valid boolean");
  out = in.get<bool>();
}

void decode_int(const json::Value& in, const Bounds& bounds, std::int64_t lowest, std::int64_t highest, const json::Value& loc,
                std::int64_t& out, Issues& issues) {
  const bool whole_float = in.is_number_float() && in.get<double>() == std::floor(in.get<double>());
  if (in.is_number_float() && !whole_float)
    return issues.add(loc, "int_from_float", "Input should be a valid integer, got a number with a fractional part");
  if (!in.is_number()) return issues.add(loc, "int_type", "Input should be a valid integer");
  // The float comparison comes first: converting a float outside int64 would be undefined behaviour.
  const bool too_large = in.is_number_unsigned() ? in.get<std::uint64_t>() > static_cast<std::uint64_t>(highest)
                         : whole_float           ? in.get<double>() >= 9.2e18 || in.get<double>() <= -9.2e18
                                                 : false;
  if (!too_large) out = whole_float ? static_cast<std::int64_t>(in.get<double>()) : in.get<std::int64_t>();
  if (too_large || out > highest || out < lowest) {
    out = 0;
    return issues.add(loc, "int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size");
  }
  check_range(static_cast<double>(out), bounds, loc, issues);
}

void decode_double(const json::Value& in, const Bounds& bounds, const json::Value& loc, double& out, Issues& issues) {
  if (!in.is_number()) return issues.add(loc, "float_type", "Input should be a valid number");
  out = in.get<double>();
  if (!std::isfinite(out)) return issues.add(loc, "finite_number", "Input should be a finite number");
  check_range(out, bounds, loc, issues);
}

json::Value describe_scalar(std::string_view type, const Bounds& bounds) {
  json::Value out = {{"type", type}};
  if (!bounds.format.empty()) out["format"] = bounds.format;
  if (!bounds.pattern.empty()) out["pattern"] = bounds.pattern;
  if (bounds.one_of.size() == 1) out["const"] = bounds.one_of[0];
  else
    for (const std::string_view name : bounds.one_of) out["enum"].push_back(name);
  if (bounds.unlisted) return out;
  if (bounds.min) out["minimum"] = number(*bounds.min);
  if (bounds.above) out["exclusiveMinimum"] = number(*bounds.above);
  if (bounds.max) out["maximum"] = number(*bounds.max);
  if (bounds.min_length) out["minLength"] = *bounds.min_length;
  if (bounds.max_length) out["maxLength"] = *bounds.max_length;
  return out;
}

void check_unknown(const json::Value& object, std::span<const std::string_view> known, const json::Value& loc, Issues& issues) {
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, std::string_view(key)) == known.end())
      issues.add(below(loc, key), "extra_forbidden", "Extra inputs are not permitted");
}

std::optional<json::Value> parse_body(std::string_view text, bool may_be_empty, std::size_t max_bytes, Issues& issues) {
  const json::Value loc = json::Value::array({"body"});
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    if (may_be_empty) return json::Value::object();
    issues.add(loc, "missing", "Field required");
    return std::nullopt;
  }
  auto value = json::parse(text, {.max_bytes = max_bytes, .max_depth = 32, .max_values = 128 * 1024});
  if (!value) {
    issues.add(loc, "json_invalid", "JSON decode error: " + value.error().what);
    return std::nullopt;
  }
  if (value->is_null() && may_be_empty) return json::Value::object();
  return std::move(*value);
}

}  // namespace schema
}  // namespace caisson::routes
