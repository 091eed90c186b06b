// What the parsers of this folder say of the bytes that have come. Each is pure, takes time linear in the bytes, keeps no more
// than they are, and says the same however they were cut into segments.
#pragma once

#include <cstddef>
#include <string_view>

#include "launcher/common/egress/protocol.h"

namespace caisson::egress {

struct [[nodiscard]] Outcome {
  enum class Step { need_more, done, refused };
  Step step = Step::need_more;
  std::size_t size = 0;  // done: bytes that it is of; what follows them is not looked at
  Refusal refusal = Refusal::none;
  std::string_view why;  // refused: a literal, for the answer's text
  [[nodiscard]] bool done() const { return step == Step::done; }
  [[nodiscard]] bool refused() const { return step == Step::refused; }
};

constexpr Outcome need_more() { return {}; }
constexpr Outcome done(std::size_t size) { return {.step = Outcome::Step::done, .size = size}; }
constexpr Outcome refuse(Refusal refusal, std::string_view why) {
  return {.step = Outcome::Step::refused, .refusal = refusal, .why = why};
}

// Heads of HTTP, and everything that comes before a TLS ClientHello ends.
inline constexpr std::size_t kMaxHead = 16 * 1024;
inline constexpr std::size_t kMaxFields = 100;

}  // namespace caisson::egress
