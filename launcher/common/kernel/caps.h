// Empty capability sets and locked securebits. Split in two because the bounding set and the securebits need CAP_SETPCAP,
// which a change of uid may take away, while the last capset comes after it.
#pragma once

namespace caisson::confine {

// Once in the launcher before any fork: libcap-ng finds out the last capability by reading /proc.
void caps_prepare();

// Whether CAP_SETUID is in the effective set: without it, root has one uid for all, as anybody else.
[[nodiscard]] bool caps_change_uid();
// Whether the bounding set is empty: whoever has no capability then never has one, root included.
[[nodiscard]] bool caps_never();

// Empties the bounding and ambient sets and locks the securebits, so that no later exec or setuid gives any capability.
// False with errno when CAP_SETPCAP is missing and the bounding set is not empty anyway.
[[nodiscard]] bool caps_drop_bounding();
// Empties permitted, effective and inheritable. Post-condition: read back with capget(2).
[[nodiscard]] bool caps_drop_all();

}  // namespace caisson::confine
