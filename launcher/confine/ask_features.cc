#include "launcher/confine/ask.h"
#include "launcher/confine/frozen_features.h"

namespace caisson::confine {

Result<Features> ask_features() {
  constexpr std::size_t kMost = 64 * 1024;
  constexpr int kDeadlineMs = 10'000;  // it takes some milliseconds
  auto bytes = ask({.program = "caisson-probe", .arguments = {}, .request = {}, .most = kMost, .deadline_ms = kDeadlineMs});
  if (!bytes) return std::unexpected(std::move(bytes).error().wrap("caisson-probe"));
  policy::Reader reader(*bytes);
  std::string mark;
  Features features;
  reader(mark, features);
  if (mark != policy::frozen_mark() || !reader.whole())
    return fail(Code::protocol, "caisson-probe: its answer is none of this version");
  return features;
}

}  // namespace caisson::confine
