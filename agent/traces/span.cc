#include "agent/traces/span.h"

#include <algorithm>
#include <random>

namespace caisson::traces {
namespace {

constexpr std::size_t kTraceDigits = 32, kSpanDigits = 16, kLength = 55;           // 00-<trace>-<span>-<flags>
constexpr std::size_t kMostMembers = 32, kMostOfMember = 256, kMostOfState = 512;  // of tracestate

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

bool is_key(std::string_view key) {
  const auto may_begin = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !key.empty() && key.size() <= kMostOfMember && may_begin(key[0]) &&
         std::ranges::all_of(key, [&](char c) { return may_begin(c) || std::string_view("_-*/@").contains(c); });
}

bool is_value(std::string_view value) {
  return !value.empty() && value.size() <= kMostOfMember &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t from = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(from, text.find_last_not_of(" \t") + 1 - from);
}

}  // namespace

std::string_view valid_tracestate(std::string_view text) {
  if (text.size() > kMostOfState) return "";
  std::size_t members = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = trimmed(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.find(','), rest.size() - 1) + 1);
    if (one.empty()) continue;  // such members are permitted
    const std::size_t equals = std::min(one.find('='), one.size());
    if (++members > kMostMembers || equals == one.size() || !is_key(one.substr(0, equals)) || !is_value(one.substr(equals + 1)))
      return "";
  }
  return text;
}

std::optional<Parent> parse_traceparent(std::string_view text) {
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, kTraceDigits), span = text.substr(36, kSpanDigits),
                         flags = text.substr(53, 2);
  if (!is_hex(version) || !is_hex(trace) || !is_hex(span) || !is_hex(flags) || is_zero(trace) || is_zero(span))
    return std::nullopt;
  // Later versions may append fields after a hyphen. Version ff is invalid (W3C Trace Context 3.2.2.1).
  if (version == "ff" || (version == "00" ? text.size() != kLength : text.size() > kLength && text[kLength] != '-'))
    return std::nullopt;
  const char last = flags[1];
  const int bits = last <= '9' ? last - '0' : last - 'a' + 10;
  return Parent{std::string(trace), std::string(span), (bits & 1) != 0};
}

// No secret: it need not be unguessable, only unlike any other.
std::string new_id(std::size_t bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  static std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  std::string id;
  while (id.size() < 2 * bytes) {
    std::uint64_t number = random();
    for (int i = 0; i < 16 && id.size() < 2 * bytes; ++i, number >>= 4) id += kDigits[number & 15];
  }
  return is_zero(id) ? new_id(bytes) : id;
}

}  // namespace caisson::traces
