#include "launcher/egress/list/host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "launcher/egress/list/prefix.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxHost = 255, kMaxName = 253, kMaxLabel = 63;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_label_char(char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; }
int hex_value(char c) { return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

std::unexpected<Error> refuse(std::string_view text, std::string_view why) {
  return fail(Code::invalid_argument, "host '" + quote(text) + "' " + std::string(why));
}

// Whether a program that calls inet_aton would take this label for a number. Such a last label makes the whole an address or
// nothing (as the URL standard says): resolvers do not ask for it, so it must not count as a name either.
bool is_number(std::string_view label) {
  if (label.starts_with("0x")) return std::ranges::all_of(label.substr(2), [](char c) { return hex_value(c) >= 0; });
  return std::ranges::all_of(label, is_digit);
}

// A part as inet_aton reads it: 0x... hexadecimal, 0... octal, else decimal.
std::optional<std::uint32_t> read_part(std::string_view part) {
  unsigned base = 10;
  if (part.starts_with("0x")) base = 16, part.remove_prefix(2);
  else if (part.size() > 1 && part[0] == '0') base = 8, part.remove_prefix(1);
  if (part.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : part) {
    const int digit = hex_value(c);
    if (digit < 0 || static_cast<unsigned>(digit) >= base) return std::nullopt;
    value = value * base + static_cast<unsigned>(digit);
    if (value > 0xffffffff) return std::nullopt;
  }
  return static_cast<std::uint32_t>(value);
}

// One to four parts; the last one fills the bytes that are left: 127.1 is 127.0.0.1.
std::optional<Address> read_ipv4(std::string_view text) {
  std::uint32_t value = 0;
  for (unsigned parts = 1; parts <= 4; ++parts) {
    const std::size_t dot = text.find('.');
    const auto part = read_part(text.substr(0, dot));
    const unsigned bits_left = 32 - 8 * (parts - 1);
    if (!part) return std::nullopt;
    if (dot == std::string_view::npos) {
      if (bits_left < 32 && (*part >> bits_left) != 0) return std::nullopt;
      value |= *part;
      Address address;
      for (unsigned i = 0; i < 4; ++i) address.bytes[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
      return address;
    }
    if (*part > 255) return std::nullopt;
    value |= *part << (bits_left - 8);
    text.remove_prefix(dot + 1);
  }
  return std::nullopt;
}

std::optional<Address> read_ipv6(std::string_view text) {
  Address address{.v6 = true};
  if (inet_pton(AF_INET6, std::string(text).c_str(), address.bytes.data()) != 1) return std::nullopt;
  return canonical(address);
}

Result<Host> read_name(std::string_view text, std::string name) {
  if (name.size() > kMaxName) return refuse(text, "is longer than a name may be (253 bytes)");
  std::string_view label;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    label = std::string_view(name).substr(at, end - at);
    if (label.empty() || label.size() > kMaxLabel) return refuse(text, "has a label that is empty or longer than 63 bytes");
    if (!std::ranges::all_of(label, is_label_char) || label.front() == '-')
      return refuse(text, "has a label that no name may have (letters, digits, '-', '_'; other scripts as xn--...)");
    at = end + 1;
  }
  if (!std::ranges::any_of(label, is_letter)) return refuse(text, "has no letter in its last label");
  return Name{std::move(name)};
}

std::string ipv6_text(const std::array<std::uint8_t, 16>& bytes) {
  std::array<unsigned, 8> groups{};
  for (std::size_t i = 0; i < 8; ++i) groups[i] = bytes[2 * i] * 256U + bytes[2 * i + 1];
  // RFC 5952 4.2: the first of the longest runs of two zeros or more is shortened.
  std::size_t best = 8, best_size = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t end = i;
    while (end < 8 && groups[end] == 0) ++end;
    if (end - i > best_size) best = i, best_size = end - i;
  }
  std::string text;
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == best) {
      text += "::";
      i += best_size - 1;
      continue;
    }
    if (!text.empty() && !text.ends_with(':')) text += ':';
    char group[8];
    text.append(group, static_cast<std::size_t>(std::snprintf(group, sizeof group, "%x", groups[i])));
  }
  return text;
}

}  // namespace

std::string Address::text() const {
  if (v6) return ipv6_text(bytes);
  std::string text;
  for (std::size_t i = 0; i < 4; ++i) text += (i > 0 ? "." : "") + std::to_string(bytes[i]);
  return text;
}

std::string host_text(const Host& host) {
  const auto* name = std::get_if<Name>(&host);
  return name != nullptr ? name->text : std::get<Address>(host).text();
}

Result<Host> read_host(std::string_view text) {
  if (text.empty() || text.size() > kMaxHost) return refuse(text, "is empty or longer than 255 bytes");
  if (!std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; }))
    return refuse(text, "has a byte that no host has (control byte, space, or above 0x7f)");
  if (text.front() == '[' || text.find(':') != std::string_view::npos) {
    const bool bracketed = text.front() == '[' && text.back() == ']';
    const auto address = read_ipv6(bracketed ? text.substr(1, text.size() - 2) : text);
    if (!address) return refuse(text, "is no IPv6 address");
    return *address;
  }
  std::string host(text);
  if (host.back() == '.') host.pop_back();
  for (char& c : host)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (!is_number(std::string_view(host).substr(host.rfind('.') + 1))) return read_name(text, std::move(host));
  const auto address = read_ipv4(host);
  if (!address) return refuse(text, "ends with a number and is no IPv4 address");
  return *address;
}

}  // namespace caisson::egress
