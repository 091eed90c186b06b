#include "launcher/egress/list/pattern.h"

#include <algorithm>
#include <charconv>

namespace caisson::egress {
namespace {

Result<Pattern> no_pattern(std::string_view text, std::string_view why) {
  return fail(Code::invalid_argument, quote(text) + std::string(why));
}

Result<Pattern> read_block(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto host = read_host(text.substr(0, slash));
  const auto* address = host ? std::get_if<Address>(&*host) : nullptr;
  const std::string_view digits = text.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (address == nullptr || error != std::errc() || end != digits.data() + digits.size() ||
      !is_whole({*address, std::min(bits, 255U)}))
    return no_pattern(text, " is no block of addresses, such as 10.0.0.0/8");
  return Pattern{.text = address->text() + "/" + std::to_string(bits), .name = {}, .suffix = {}, .block = Prefix{*address, bits}};
}

}  // namespace

Result<Pattern> read_pattern(std::string_view text) {
  if (text.contains('/')) return read_block(text);
  const std::string_view mark = text.starts_with("*.") ? "*." : text.starts_with('.') ? "." : "";
  const auto host = read_host(text.substr(mark.size()));
  if (!host) return no_pattern(text, " is none of example.org, .example.org, *.example.org, an address or a block of addresses");
  const auto* name = std::get_if<Name>(&*host);
  if (name == nullptr && !mark.empty()) return no_pattern(text, " is no name below which others could be");
  if (name == nullptr)
    return Pattern{.text = host_text(*host),
                   .name = {},
                   .suffix = {},
                   .block = Prefix{std::get<Address>(*host), family_bits(std::get<Address>(*host))}};
  return Pattern{.text = std::string(mark) + name->text,
                 .name = mark == "*." ? "" : name->text,
                 .suffix = mark.empty() ? "" : "." + name->text,
                 .block = {}};
}

bool matches(const Pattern& pattern, const Host& host) {
  if (const auto* address = std::get_if<Address>(&host)) return pattern.block && contains(*pattern.block, *address);
  const std::string& name = std::get<Name>(host).text;
  return (!pattern.name.empty() && name == pattern.name) || (!pattern.suffix.empty() && name.ends_with(pattern.suffix));
}

bool matches_any(const std::vector<Pattern>& patterns, const Host& host) {
  return std::ranges::any_of(patterns, [&host](const Pattern& pattern) { return matches(pattern, host); });
}

}  // namespace caisson::egress
