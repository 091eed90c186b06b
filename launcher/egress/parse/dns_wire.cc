#include "launcher/egress/parse/dns_wire.h"

#include <algorithm>

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxWireName = 255, kMaxLabel = 63;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string_view DnsReader::take(std::size_t size) {
  good_ = good_ && size <= message_.size() - at_;
  if (!good_) return {};
  const std::string_view taken = message_.substr(at_, size);
  at_ += size;
  return taken;
}

std::uint32_t DnsReader::number(std::size_t width) {
  std::uint32_t value = 0;
  for (const char c : take(width)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

DnsHead DnsReader::head() {
  DnsHead head;
  for (std::uint16_t* field : {&head.id, &head.flags, &head.questions, &head.answers, &head.authorities, &head.additional})
    *field = static_cast<std::uint16_t>(number(2));
  return head;
}

std::string DnsReader::name_at(std::size_t& at, bool pointers) {
  std::string name;
  std::size_t here = at, least = at;
  bool jumped = false;
  while (good_) {
    const std::size_t size = here < message_.size() ? static_cast<unsigned char>(message_[here]) : 0xff;
    if ((size & 0xc0) == 0xc0 && here + 1 < message_.size()) {
      const std::size_t target = (size & 0x3f) << 8 | static_cast<unsigned char>(message_[here + 1]);
      if (!jumped) at = here + 2;
      jumped = true;
      good_ = pointers && target < least && target >= kDnsHead;
      here = least = target;
      continue;
    }
    good_ = size <= kMaxLabel && size < message_.size() - here && name.size() + 1 + size <= kMaxWireName;
    if (!good_) break;
    name += static_cast<char>(size);
    for (const char c : message_.substr(here + 1, size)) name += lower(c);
    here += 1 + size;
    if (size != 0) continue;
    if (!jumped) at = here;
    return name;
  }
  return {};
}

std::string DnsReader::name(bool pointers) { return name_at(at_, pointers); }

std::string DnsReader::name_in(std::string_view part) {
  std::size_t at = at_ - part.size();
  std::string name = name_at(at, true);
  good_ = good_ && at == at_;
  return good_ ? name : std::string();
}

std::string wire_name(const Name& name) {
  std::string wire;
  for (std::size_t at = 0; at < name.text.size();) {
    const std::size_t end = std::min(name.text.find('.', at), name.text.size());
    wire += static_cast<char>(end - at);
    wire.append(name.text, at, end - at);
    at = end + 1;
  }
  return wire + '\0';
}

std::optional<Host> wire_host(std::string_view wire) {
  std::string text;
  while (!wire.empty() && wire[0] != 0) {
    const auto size = static_cast<std::size_t>(wire[0]);
    const std::string_view label = wire.substr(1, size);
    if (label.find('.') != std::string_view::npos) return std::nullopt;
    text.append(text.empty() ? "" : ".").append(label);
    wire.remove_prefix(std::min(1 + size, wire.size()));
  }
  auto host = read_host(text);
  return host ? std::optional(*std::move(host)) : std::nullopt;
}

void put_number(std::string& out, std::uint32_t value, std::size_t width) {
  while (width-- > 0) out += static_cast<char>(std::uint64_t{value} >> 8 * width);
}

}  // namespace caisson::egress
