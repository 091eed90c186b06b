#include "agent/services/shell/shell_words.h"

namespace caisson::services {
namespace {

bool is_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kPlain = " _-./:=,+@%^~()[]{}<>|&;*$\"#";
  constexpr char kHex[] = "0123456789abcdef";
  if (is_alnum(c) || kPlain.contains(c)) {
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else {  // two digits always, so that a following digit is never taken as part of the number
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

}  // namespace

std::vector<std::string> ansi_quote_pieces(std::string_view text, std::size_t max_bytes) {
  std::vector<std::string> pieces(1, "$'");
  for (const char c : text) {
    if (pieces.back().size() + 5 > max_bytes) {
      pieces.back() += '\'';
      pieces.emplace_back("$'");
    }
    append_escaped(pieces.back(), c);
  }
  pieces.back() += '\'';
  return pieces;
}

std::string ansi_quote(std::string_view text) { return ansi_quote_pieces(text, std::string::npos - 8).front(); }

std::string single_quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out + "'";
}

}  // namespace caisson::services
