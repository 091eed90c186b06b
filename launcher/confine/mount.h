// The mount tree of a session, built by a child in its own mount namespace: an empty tmpfs that receives the grants by
// descriptor, then becomes the root. Async-signal-safe; every error ends the child with a step record.
#pragma once

#include <string_view>

#include "launcher/confine/plan.h"
#include "launcher/confine/steps.h"

namespace caisson::confine {

// What a fresh procfs shows of the machine that no session needs and any uid may read. Every procfs has the first, a
// directory: it gets a tmpfs of its own, from which the others are cloned. Kernels before 6.15 clone no detached mount.
inline constexpr const char* kProcMaskRoot = "/proc/bus";
inline constexpr const char* kProcMasks[] = {"/proc/acpi",      "/proc/interrupts", "/proc/keys",
                                             "/proc/key-users", "/proc/kallsyms",   "/proc/scsi"};

// Pseudo-terminals are the kernel's, 4096 for everybody: a session has a part of them. What is last is read back.
inline constexpr char kPtsOptions[] = "newinstance,ptmxmode=0666,mode=0620,max=32";
inline constexpr const char* kPtsMax = kPtsOptions + std::string_view(kPtsOptions).rfind(',') + 1;

// Makes all mounts of the calling process's new mount namespace private and mounts the workspace's tmpfs at `stage`
// (owner: the inner uid), to be shared as /tmp by every tree built from this namespace; at `home_stage` the workspace's home,
// where the plan has one. Returns the home's descriptor, or -1.
int mount_stage(const Plan& plan, const char* stage, const char* home_stage, StepWriter& steps);

// Builds the tree at `stage_dir` (any directory) and pivots into it. On return the process sees only the session's root,
// and runs as the inner uid. Order: sources are opened first, as the launcher's uid and in this namespace, and compared with
// the identities in the plan; from then on only descriptors are used.
void build_root(const Plan& plan, const char* stage_dir, StepWriter& steps);

// A fresh procfs on /proc (unless build_root ran in this very PID namespace and mounted it), devpts on /dev/pts and tmpfs on
// /dev/shm, in the final PID and IPC namespace.
void mount_instance(const Plan& plan, bool proc_is_mounted, StepWriter& steps);

}  // namespace caisson::confine
