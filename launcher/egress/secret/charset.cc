#include "launcher/egress/secret/charset.h"

#include <algorithm>
#include <string>

namespace caisson::egress {
namespace {

// What their names begin with (IANA's registry, and what servers write).
constexpr std::string_view kKnown[] = {"utf-8", "utf8",        "us-ascii", "ascii", "binary",  "iso-8859-", "iso8859-",  "latin",
                                       "koi8-", "windows-125", "gb2312",   "gbk",   "gb18030", "big5",      "shift_jis", "euc-"};

}  // namespace

bool has_ascii(std::string_view type) {
  std::string text(type);
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::string_view kCharset = "charset";
  for (std::size_t at = text.find(kCharset); at != std::string::npos; at = text.find(kCharset, at)) {
    at = std::min(text.find_first_not_of(" \t=\"'", at + kCharset.size()), text.size());
    const std::string_view name = std::string_view(text).substr(at);
    const bool known = std::ranges::any_of(kKnown, [name](std::string_view one) { return name.starts_with(one); });
    if (!known && !name.empty() && name.front() != ';') return false;
  }
  return true;
}

}  // namespace caisson::egress
