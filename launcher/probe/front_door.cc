#include "launcher/probe/front_door.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <string>

namespace caisson {
namespace {

constexpr std::size_t kNamed = 64, kLongest = 80;
constexpr std::string_view kBlank = " \t";

struct Address {
  int family = AF_INET;
  unsigned char bytes[16] = {};
};

// An IPv4 address that is written as part of IPv6 (::ffff:192.0.2.1) is the IPv4 address to the agent.
bool read_address(const std::string& text, Address& out) {
  if (::inet_pton(AF_INET, text.c_str(), out.bytes) == 1) return true;
  out.family = AF_INET6;
  return ::inet_pton(AF_INET6, text.c_str(), out.bytes) == 1;
}

bool is_mapped(const Address& address) {
  static constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return address.family == AF_INET6 && std::memcmp(address.bytes, kMapped, sizeof kMapped) == 0;
}

// "" where it is none.
std::string canonical(std::string_view range) {
  const std::size_t slash = range.find('/');
  Address address;
  if (!read_address(std::string(range.substr(0, slash)), address)) return "";
  unsigned bits = address.family == AF_INET ? 32 : 128;
  const unsigned most = bits;
  if (slash != std::string_view::npos) {
    const std::string_view digits = range.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc() || end != digits.data() + digits.size() || bits > most) return "";
  }
  if (is_mapped(address) && bits >= 96) {
    std::memmove(address.bytes, address.bytes + 12, 4);
    address.family = AF_INET;
    bits -= 96;
  }
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(address.family, address.bytes, text, sizeof text);
  return std::string(text) + "/" + std::to_string(bits);
}

}  // namespace

json::Value front_door(std::string_view auth, std::string_view peers) {
  std::set<std::string> ranges;
  while (!peers.empty()) {
    const std::size_t comma = std::min(peers.find(','), peers.size());
    std::string_view one = peers.substr(0, comma);
    peers.remove_prefix(std::min(comma + 1, peers.size()));
    one.remove_prefix(std::min(one.find_first_not_of(kBlank), one.size()));
    one = one.substr(0, one.find_last_not_of(kBlank) + 1);
    if (one.empty()) continue;
    std::string spelled = one.contains('\0') ? "" : canonical(one);
    ranges.insert(spelled.empty() ? quote(one, kLongest) : std::move(spelled));
  }
  json::Value named = json::Value::array();
  for (auto it = ranges.begin(); it != ranges.end() && named.size() < kNamed; ++it) named.push_back(*it);
  return {{"key_required", auth != "none"}, {"trusted_peers", {{"count", ranges.size()}, {"ranges", std::move(named)}}}};
}

}  // namespace caisson
