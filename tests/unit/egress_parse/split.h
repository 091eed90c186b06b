// Bytes come in segments that their sender chooses: a parser must say the same of each way to cut them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "launcher/egress/parse/outcome.h"

namespace caisson::egress {

inline void expect_same(const Outcome& a, const Outcome& b, std::string_view bytes, std::size_t cut) {
  EXPECT_TRUE(a.step == b.step && a.size == b.size && a.refusal == b.refusal && a.why == b.why)
      << "cut at " << cut << " of " << bytes << ": " << a.why << " / " << b.why;
}

// make() gives a function that is called with ever more of the bytes, until it does not ask for more.
Outcome in_every_cut(std::string_view bytes, const auto& make) {
  const Outcome whole = make()(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    auto read = make();
    Outcome first = read(bytes.substr(0, cut));
    if (first.step == Outcome::Step::need_more) first = read(bytes);
    expect_same(first, whole, bytes, cut);
  }
  auto read = make();
  Outcome last = need_more();
  for (std::size_t size = 0; size <= bytes.size() && last.step == Outcome::Step::need_more; ++size)
    last = read(bytes.substr(0, size));
  expect_same(last, whole, bytes, 1);
  return whole;
}

// What is done is done with its own bytes: fewer of them are not enough, and what follows changes nothing.
void expect_exact(std::string_view bytes, const auto& make) {
  const Outcome whole = in_every_cut(bytes, make);
  ASSERT_TRUE(whole.done()) << whole.why << ": " << bytes;
  for (std::size_t size = 0; size < whole.size; ++size)
    EXPECT_TRUE(make()(bytes.substr(0, size)).step == Outcome::Step::need_more) << size << " of " << bytes;
  const Outcome more = make()(std::string(bytes) + "\n\0more");
  EXPECT_TRUE(more.done() && more.size == whole.size) << bytes;
}

}  // namespace caisson::egress
