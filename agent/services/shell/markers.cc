#include "agent/services/shell/markers.h"

#include <charconv>
#include <optional>

namespace caisson::services {
namespace {

constexpr std::string_view kIntroducer = "\x1b]7717;";
constexpr std::size_t kLongestMarker = 8 * 1024;  // PATH_MAX and the other fields

std::optional<Marker::Kind> kind_of(std::string_view text) {
  if (text == "S") return Marker::Kind::start;
  if (text == "P") return Marker::Kind::prompt;
  if (text == "B") return Marker::Kind::busy;
  if (text == "X") return Marker::Kind::leaving;
  return std::nullopt;
}

// Removes the part before the next ';' from the front and returns it.
std::string_view next_field(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(';'), rest.size());
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.size(), end + 1));
  return field;
}

std::optional<Marker> parse(std::string_view body, std::string_view nonce) {
  const auto kind = kind_of(next_field(body));
  if (!kind || next_field(body) != nonce || nonce.empty()) return std::nullopt;
  Marker marker{.kind = *kind};
  const std::string_view number = next_field(body);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), marker.number);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  marker.path = body;
  return marker;
}

// Where a marker begins, complete or cut off by the end of the bytes; npos: nowhere.
std::size_t find_introducer(std::string_view bytes) {
  for (std::size_t at = bytes.find('\x1b'); at != std::string_view::npos; at = bytes.find('\x1b', at + 1)) {
    const std::string_view here = bytes.substr(at, kIntroducer.size());
    if (kIntroducer.starts_with(here)) return at;
  }
  return std::string_view::npos;
}

}  // namespace

// At most one marker is held back.
void MarkerParser::remember(Memory memory) {
  nonce_ = std::move(memory.nonce);
  older_ = std::move(memory.older);
  held_ = memory.held.size() <= kLongestMarker && memory.held.find('\a') == std::string::npos ? std::move(memory.held) : "";
}

std::vector<StreamItem> MarkerParser::feed(std::string_view bytes) {
  std::vector<StreamItem> items;
  std::string joined = std::exchange(held_, {});
  const std::size_t held = joined.size();  // without a BEL
  if (held > 0) bytes = joined.append(bytes);
  const std::string_view all = bytes;
  std::string text;
  std::size_t bell =
      all.find('\a', held);  // the first one after the current position: searched once, however many markers begin before it
  while (!bytes.empty()) {
    const std::size_t at = find_introducer(bytes);
    text += bytes.substr(0, at);
    if (at == std::string_view::npos) break;
    bytes.remove_prefix(at);
    const std::size_t here = all.size() - bytes.size();
    if (bell < here) bell = all.find('\a', here);
    const std::size_t end = bell != std::string_view::npos && bell - here < kLongestMarker ? bell - here : std::string_view::npos;
    if (end == std::string_view::npos && bytes.size() < kLongestMarker) {  // the rest has not come yet
      held_ = bytes;
      break;
    }
    const std::string_view body = end == std::string_view::npos ? "" : bytes.substr(kIntroducer.size(), end - kIntroducer.size());
    auto marker = parse(body, nonce_);
    if (!marker && take_older_ && (marker = parse(body, older_))) marker->older = true;
    if (!marker) {  // not ours: plain output
      text += bytes.front();
      bytes.remove_prefix(1);
      continue;
    }
    if (!text.empty()) items.emplace_back(std::exchange(text, {}));
    items.emplace_back(std::move(*marker));
    bytes.remove_prefix(end + 1);
  }
  if (!text.empty()) items.emplace_back(std::move(text));
  return items;
}

}  // namespace caisson::services
