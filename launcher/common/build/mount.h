// The mount tree of a session, built by a child in its own mount namespace: an empty tmpfs that receives the grants by
// descriptor, then becomes the root. Async-signal-safe; every error ends the child with a step record.
#pragma once

#include "launcher/common/build/step_writer.h"
#include "launcher/common/kernel/session_mounts.h"
#include "launcher/common/wire/build_plan.h"

namespace caisson::confine {

// Directories in the memory of a workspace: what is /tmp, and what `workspace:NAME` names in grants.
inline constexpr const char* kOfWorkspace[] = {"tmp", "display"};

using builder::BuildPlan;
using builder::Proc;

// Makes all mounts of the calling process's new mount namespace private and mounts the workspace's tmpfs at `stage`
// (owner: the inner uid, which the caller is afterwards), with the directories of kOfWorkspace, to be shared by the trees built
// from this namespace; at `home_stage` the workspace's home,
// where the plan has one. Returns the home's descriptor, or -1.
int mount_stage(const BuildPlan& plan, const char* stage, const char* home_stage, StepWriter& steps);

// Builds the tree at `stage_dir` (any directory) and pivots into it. On return the process sees only the session's root,
// and runs as the inner uid. Order: sources are opened first, as the launcher's uid and in this namespace, and compared with
// the identities in the plan; from then on only descriptors are used.
void build_root(const BuildPlan& plan, const char* stage_dir, StepWriter& steps);

// A fresh procfs on /proc (unless build_root ran in this very PID namespace and mounted it), devpts on /dev/pts and tmpfs on
// /dev/shm, in the final PID and IPC namespace.
void mount_instance(const BuildPlan& plan, bool proc_is_mounted, StepWriter& steps);

}  // namespace caisson::confine
