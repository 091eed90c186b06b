#include "launcher/egress/list/lists.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxDomain = 64, kMaxDigits = 8;

std::optional<std::string_view> take_line(std::string_view& bytes, std::size_t most) {
  const std::size_t end = bytes.substr(0, most + 1).find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return line;
}

std::optional<std::string_view> take_sized(std::string_view& bytes) {
  const auto digits = take_line(bytes, kMaxDigits);
  std::size_t size = 0;
  if (!digits) return std::nullopt;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), size);
  if (error != std::errc() || end != digits->data() + digits->size() || size > bytes.size()) return std::nullopt;
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

}  // namespace

Result<Lists> read_lists(std::string_view bytes) {
  if (bytes.size() > kMaxListsBytes) return fail(Code::limit, "the egress lists are too large");
  Lists out;
  std::optional<std::string_view> first;
  while (!bytes.empty()) {
    const auto domain = take_line(bytes, kMaxDomain);
    const auto text = domain ? take_sized(bytes) : std::nullopt;
    if (!text || domain->empty() || out.of.size() == kMaxLists) return fail(Code::protocol, "the egress lists are malformed");
    TRY_ASSIGN(List list, read_list(*text));
    if (!first) first = *text;
    out.alike = out.alike && *first == *text;
    if (!out.of.emplace(*domain, std::make_shared<const List>(std::move(list))).second)
      return fail(Code::protocol, "an egress list comes twice");
  }
  return out;
}

}  // namespace caisson::egress
