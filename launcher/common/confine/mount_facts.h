// The mounts and the standard streams of a running session as the kernel shows them, compared with the plan. A canary cannot make
// these attacks: it has no set-user-id program, no device file and no second name of a hidden path.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/base/result.h"
#include "launcher/common/confine/plan.h"
#include "launcher/common/confine/protect.h"

namespace caisson::confine {

struct Mounted {
  std::string point;
  std::string_view id, device, options, type, of_type;  // options: of the mount; of_type: of its filesystem
};
// Parses a line of mountinfo; the views point into it. nullopt: it has not that form (proc(5)).
[[nodiscard]] std::optional<Mounted> mounted(std::string_view line);
// Whether a list with commas has the item.
[[nodiscard]] bool has(std::string_view options, std::string_view wanted);

// A mount table that was found as planned, without what differs from session to session (ids, anonymous devices), and the words
// for it: the next session of the same template is compared with it line by line, as one text.
struct KnownMounts {
  std::string table, words;
};

// /proc/<pid>/mountinfo, read once: every mount is nosuid, and nodev but for devices; the root is read-only; the launcher's own
// mounts are there; each grant is there, with what lies mounted below it no more writable or executable than the policy says;
// what caisson-protect made of names is read-only, behind mount points. Returns what was seen, in words.
[[nodiscard]] Result<std::string> check_mount_tree(const Plan& plan, pid_t pid, const Protection* protection,
                                                   KnownMounts* known = nullptr);
// The next two return "" where the kernel does not let us look: at a process of another user (T0), at one that has not executed
// anything since its ids changed (`caisson run`), and at descriptors where container root is remapped (the list of an undumpable
// process belongs to the host's root; a canary looks from inside).
//
// What `hide` names, and what a fresh /proc shows of the machine: covered by something empty, unreadable and read-only, or not
// there. masks false: without the latter, which in a session that was once seen whole lies on nothing of the outside's.
[[nodiscard]] Result<std::string> check_covers(const Plan& plan, pid_t pid, bool masks, const Protection* protection);
// 0 to 2 are /dev/null and the process leads a POSIX session: no terminal or file of the launcher's is left.
[[nodiscard]] Result<std::string> check_stdio(pid_t pid);

}  // namespace caisson::confine
