// What a viewer who only watches can send, mutated. The first byte says how the rest is cut into pieces. A broken promise aborts:
// an X server that reads what passes, in the lengths of RFC 6143, meets requests for pictures and nothing else, and the cutting
// changes nothing.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/services/desktop/watcher_filter.h"

namespace caisson::services {
namespace {

void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::uint32_t number(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < bytes; ++i) out = out << 8 | static_cast<std::uint8_t>(text[at + i]);
  return out;
}

// The message at the begin of the text: its length, or 0 where more of it must come.
std::size_t length_of(std::string_view text) {
  const auto fixed = [&](std::size_t bytes) { return text.size() < bytes ? 0 : bytes; };
  switch (static_cast<std::uint8_t>(text[0])) {
    case 0:
      return fixed(20);
    case 2: {
      if (text.size() < 4) return 0;
      const std::size_t count = number(text, 2, 2);
      promise(count > 0, "the extended clipboard is always among the encodings");
      for (std::size_t i = 0; i < count && text.size() >= 8 + 4 * i; ++i)
        promise(number(text, 4 + 4 * i, 4) != static_cast<std::uint32_t>(-316), "pointer messages keep their length");
      return fixed(4 + 4 * count);
    }
    case 3:
    case 150:
      return fixed(10);
    case 248:
      if (text.size() < 9) return 0;
      promise(static_cast<std::uint8_t>(text[8]) <= 64, "a fence is short");
      return fixed(9 + static_cast<std::uint8_t>(text[8]));
    default:
      promise(false, "only requests for pictures pass");
      return 0;
  }
}

void read_as_server(std::string_view text) {
  constexpr std::size_t kGreeting = 12 + 1 + 1, kManners = 8 + 16;
  if (text.size() < kGreeting) return;
  promise(text.starts_with("RFB 003.008\n\1\1"), "the greeting is of version 3.8 without security");
  promise(text.size() >= kGreeting + kManners, "the manners come with it");
  text.remove_prefix(kGreeting + kManners);
  while (!text.empty()) {
    const std::size_t length = length_of(text);
    if (length == 0) return;
    text.remove_prefix(length);
  }
}

// What passed before an error, if there is one.
std::string pass_in_pieces(std::string_view bytes, std::size_t piece) {
  WatcherFilter filter;
  std::string out;
  bool broken = false;
  while (!bytes.empty()) {
    const std::size_t size = std::min(piece, bytes.size());
    const auto passed = filter.pass(bytes.substr(0, size));
    promise(!broken || !passed, "after an error nothing passes");
    if (passed) out += *passed;
    broken = !passed;
    bytes.remove_prefix(size);
  }
  return out;
}

}  // namespace
}  // namespace caisson::services

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  using namespace caisson::services;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string singly = pass_in_pieces(bytes, 1), cut = pass_in_pieces(bytes, data[0] + std::size_t{1});
  read_as_server(singly);
  // Of a piece with an error nothing passes, of single bytes all that came before it.
  promise(singly.starts_with(cut), "the cutting changes nothing");
  return 0;
}
