// A filter of system calls as the kernel takes it. Compiling one is filter.h, loading one common/build/load_filter.h.
#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

namespace caisson::confine {

using Program = std::vector<sock_filter>;

// Refusal::notify: what would be answered EPERM is told to the filter's listener instead, which answers it so; where nobody
// listens any more, the kernel answers ENOSYS. Unknown numbers, which libraries try out all day, and foreign architectures stay
// as they are, and no allowed call is slower.
// Refusal::observe: also the calls that name files, where they are allowed without a condition; the listener lets these go on.
enum class Refusal : unsigned char { answer, notify, observe };

struct Filter {
  Program program;
  std::string refusals;  // what it can refuse with EPERM, and by which rule (common/wire/auditor_protocol.h)
};

}  // namespace caisson::confine
