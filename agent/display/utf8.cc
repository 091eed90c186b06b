#include "agent/display/utf8.h"

namespace caisson::display {
namespace {

constexpr char32_t kNone = 0xFFFFFFFF;

// Takes the character at the front. kNone: the text is empty.
char32_t take(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (size == 0 || text.size() < size) return kNone;
  char32_t character = size == 1 ? first : first & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return kNone;
    character = character << 6 | (byte & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (character < kLeast[size] || character > 0x10FFFF || (character >= 0xD800 && character < 0xE000)) return kNone;
  text.remove_prefix(size);
  return character;
}

}  // namespace

std::optional<std::u32string> decode_utf8(std::string_view text) {
  std::u32string out;
  while (!text.empty()) {
    const char32_t character = take(text);
    if (character == kNone) return std::nullopt;
    out += character;
  }
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty())
    if (take(text) == kNone) return false;
  return true;
}

std::string to_latin1(std::string_view utf8) {
  std::string out;
  while (!utf8.empty()) {
    const char32_t character = take(utf8);
    if (character == kNone) return out;
    out += character < 0x100 ? static_cast<char>(character) : '?';
  }
  return out;
}

std::string from_latin1(std::string_view latin1) {
  std::string out;
  for (const char c : latin1) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) out += static_cast<char>(0xC0 | byte >> 6);
    out += byte < 0x80 ? c : static_cast<char>(0x80 | (byte & 0x3F));
  }
  return out;
}

}  // namespace caisson::display
