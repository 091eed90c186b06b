// A filter of system calls as the kernel takes it, and loading it. Compiling one is filter.h, and no part of the launcher.
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
  std::string refusals;  // what it can refuse with EPERM, and by which rule (base/auditor_protocol.h)
};

// For the child: 0, or -1 with errno. Needs no_new_privs. listener: receives the descriptor (close-on-exec) that is told.
int load_seccomp(const Program& program, int* listener = nullptr);

}  // namespace caisson::confine
