// Mounts that every session has with a mount namespace: made by the builder, read back by the launcher.
#pragma once

#include <string_view>

namespace caisson::confine {

// What a fresh procfs shows of the machine that no session needs and any uid may read. Every procfs has the first, a
// directory: it gets a tmpfs of its own, from which the others are cloned. Kernels before 6.15 clone no detached mount.
inline constexpr const char* kProcMaskRoot = "/proc/bus";
inline constexpr const char* kProcMasks[] = {"/proc/acpi",      "/proc/interrupts", "/proc/keys",
                                             "/proc/key-users", "/proc/kallsyms",   "/proc/scsi"};

// Pseudo-terminals are the kernel's, 4096 for everybody: a session has a part of them. What is last is read back.
inline constexpr char kPtsOptions[] = "newinstance,ptmxmode=0666,mode=0620,max=32";
inline constexpr const char* kPtsMax = kPtsOptions + std::string_view(kPtsOptions).rfind(',') + 1;

}  // namespace caisson::confine
