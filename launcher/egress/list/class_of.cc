#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "launcher/egress/list/host.h"
#include "launcher/egress/list/prefix.h"

namespace caisson::egress {
namespace {

struct Block {
  std::array<std::uint8_t, 16> bytes;
  unsigned bits;
  AddressClass kind;
};
using enum AddressClass;

// The first block that has the address decides. An address in none is global.
constexpr Block kIpv4[] = {
    {{169, 254, 169, 254}, 32, metadata},
    {{169, 254, 170, 2}, 32, metadata},    // ECS
    {{169, 254, 170, 23}, 32, metadata},   // EKS
    {{168, 63, 129, 16}, 32, metadata},    // Azure
    {{100, 100, 100, 200}, 32, metadata},  // Alibaba
    {{192, 0, 0, 192}, 32, metadata},      // Oracle
    {{0}, 8, reserved},
    {{10}, 8, private_},
    {{100, 64}, 10, shared},
    {{127}, 8, loopback},
    {{169, 254}, 16, link_local},
    {{172, 16}, 12, private_},
    {{192, 0, 0}, 24, reserved},
    {{192, 0, 2}, 24, reserved},
    {{192, 88, 99}, 24, reserved},  // relays of 6to4 (RFC 7526)
    {{192, 168}, 16, private_},
    {{198, 18}, 15, reserved},
    {{198, 51, 100}, 24, reserved},
    {{203, 0, 113}, 24, reserved},
    {{224}, 4, multicast},
    {{255, 255, 255, 255}, 32, multicast},
    {{240}, 4, reserved},
};

constexpr Block kIpv6[] = {
    {{0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128, metadata},  // EC2
    {{0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x23}, 128, metadata},     // EKS
    {{0xfd, 0x20, 0x00, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128, metadata},  // GCE
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, loopback},
    {{0}, 128, reserved},
    {{0xfc}, 7, private_},
    {{0xfe, 0x80}, 10, link_local},
    {{0xff}, 8, multicast},
    {{0, 0x64, 0xff, 0x9b}, 96, translated},        // NAT64
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, translated},  // NAT64 of a network's own
    {{0}, 96, translated},                          // IPv4-compatible
    {{0x20, 0x02}, 16, translated},                 // 6to4
    {{0x20, 0x01}, 32, translated},                 // Teredo
    {{0x20, 0x01}, 23, reserved},                   // protocol assignments, benchmarking, ORCHID
    {{0x20, 0x01, 0x0d, 0xb8}, 32, reserved},
    {{0x3f, 0xff}, 20, reserved},
    {{0x20}, 3, global},
    {{0}, 0, reserved},  // not assigned
};

AddressClass look_up(const Address& address) {
  const auto in = [&](const Block& block) { return contains({{block.bytes, address.v6}, block.bits}, address); };
  if (address.v6) return std::ranges::find_if(kIpv6, in)->kind;
  const auto* const block = std::ranges::find_if(kIpv4, in);
  return block == std::end(kIpv4) ? global : block->kind;
}

Address ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) { return {{a, b, c, d}, false}; }
bool starts_with(const Address& address, std::initializer_list<std::uint8_t> bytes) {
  return std::ranges::equal(bytes, std::span(address.bytes).first(bytes.size()));
}

}  // namespace

bool contains(const Prefix& prefix, const Address& address) {
  if (prefix.address.v6 != address.v6) return false;
  const std::size_t whole = prefix.bits / 8;
  if (std::memcmp(prefix.address.bytes.data(), address.bytes.data(), whole) != 0) return false;
  const unsigned rest = prefix.bits % 8;
  return rest == 0 || ((prefix.address.bytes[whole] ^ address.bytes[whole]) >> (8 - rest)) == 0;
}

bool is_whole(const Prefix& prefix) {
  if (prefix.bits > family_bits(prefix.address)) return false;
  for (unsigned bit = prefix.bits; bit < 128; ++bit)
    if ((prefix.address.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0) return false;
  return true;
}

Address canonical(const Address& address) {
  const auto& b = address.bytes;
  if (!address.v6 || !starts_with(address, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})) return address;
  return ipv4(b[12], b[13], b[14], b[15]);
}

std::vector<Address> carried(const Address& address) {
  if (!address.v6) return {};
  const auto& b = address.bytes;
  const Address last = ipv4(b[12], b[13], b[14], b[15]);
  const auto flipped = [&](std::size_t i) { return static_cast<std::uint8_t>(~b[i]); };
  if (starts_with(address, {0x20, 0x02})) return {ipv4(b[2], b[3], b[4], b[5])};
  if (starts_with(address, {0x20, 0x01, 0, 0})) return {ipv4(flipped(12), flipped(13), flipped(14), flipped(15))};
  if (starts_with(address, {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) return {last};
  // RFC 6052 2.2: behind a prefix of 48, 56, 64 or 96 bits, around the byte 8.
  if (starts_with(address, {0, 0x64, 0xff, 0x9b, 0, 1}))
    return {last, ipv4(b[6], b[7], b[9], b[10]), ipv4(b[7], b[9], b[10], b[11]), ipv4(b[9], b[10], b[11], b[12])};
  const bool compatible = starts_with(address, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const bool isatap = (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe;
  if (compatible || isatap || canonical(address) != address) return {last};
  return {};
}

AddressClass class_of(const Address& address) {
  const Address plain = canonical(address);
  const AddressClass own = look_up(plain);
  const auto inner = carried(plain);
  if (inner.empty() || (own != global && own != private_ && own != translated)) return own;
  // Of several layouts, one that leads to a refused place decides; private or shared is only what is so in each.
  const auto leads_to = [&](AddressClass kind) {
    return std::ranges::any_of(inner, [&](const Address& one) { return look_up(one) == kind; });
  };
  for (const AddressClass kind : {metadata, loopback, link_local, multicast, reserved})
    if (leads_to(kind)) return kind;
  const AddressClass first = look_up(inner.front());
  const bool same = std::ranges::all_of(inner, [&](const Address& one) { return look_up(one) == first; });
  return same && first != global ? first : translated;
}

}  // namespace caisson::egress
