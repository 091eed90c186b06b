#include "agent/http/network.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "agent/http/token.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMaxRanges = 256, kLongestAddress = 45;
constexpr unsigned kMappedBits = 96;
constexpr AddressBytes kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_mapped(const AddressBytes& bytes) { return std::equal(kMapped.begin(), kMapped.begin() + 12, bytes.begin()); }

// Whether the first `bits` bits are the same.
bool agree(const AddressBytes& a, const AddressBytes& b, unsigned bits) {
  const std::size_t whole = bits / 8;
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin())) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

}  // namespace

std::optional<AddressBytes> address_bytes(std::string_view text) {
  if (text.empty() || text.size() > kLongestAddress) return std::nullopt;
  const std::string terminated(text);
  if (terminated.contains('\0')) return std::nullopt;
  AddressBytes bytes = kMapped;
  if (::inet_pton(AF_INET, terminated.c_str(), bytes.data() + 12) == 1) return bytes;
  if (::inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

std::string address_text(const AddressBytes& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = is_mapped(bytes);
  ::inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data() + (v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

Result<Networks::Range> Networks::read_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = address_bytes(text.substr(0, slash));
  if (!address) return caisson::fail(Code::invalid_argument, quote(text) + " is not an IP address or range");
  if (slash == std::string_view::npos) return Range{*address, 128};
  const bool v4 = !text.substr(0, slash).contains(':');
  const std::string_view digits = text.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (error != std::errc() || end != digits.data() + digits.size() || bits > (v4 ? 32U : 128U))
    return caisson::fail(Code::invalid_argument, quote(text) + " has a malformed prefix length");
  if (v4) bits += kMappedBits;
  AddressBytes first = *address;
  for (unsigned bit = bits; bit < 128; ++bit) first[bit / 8] &= static_cast<unsigned char>(~(0x80U >> (bit % 8)));
  if (first != *address) return caisson::fail(Code::invalid_argument, quote(text) + " has bits behind its prefix");
  return Range{*address, bits};
}

Result<Networks> Networks::parse(std::string_view list) {
  Networks out;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view one = trim(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (one.empty()) continue;
    if (out.ranges_.size() == kMaxRanges) return caisson::fail(Code::invalid_argument, "too many addresses");
    TRY_ASSIGN(const Range range, read_range(one));
    out.ranges_.push_back(range);
  }
  return out;
}

bool Networks::has_everything() const {
  return std::ranges::any_of(
      ranges_, [](const Range& range) { return range.bits == 0 || (range.bits == kMappedBits && is_mapped(range.address)); });
}

bool Networks::contains(std::string_view address) const {
  if (ranges_.empty()) return false;
  const auto bytes = address_bytes(address);
  return bytes && contains(*bytes);
}

bool Networks::contains(const AddressBytes& address) const {
  return std::ranges::any_of(ranges_, [&](const Range& range) { return agree(range.address, address, range.bits); });
}

}  // namespace caisson::http
