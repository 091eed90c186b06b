// Facts about a running session read back from the kernel, compared with what the plan promises. A promise that does not
// hold ends the session before its first command.
#pragma once

#include <sys/types.h>

#include <vector>

#include <nlohmann/json.hpp>

#include "launcher/common/base/result.h"
#include "launcher/common/confine/canary.h"
#include "launcher/common/confine/mount_facts.h"
#include "launcher/common/confine/plan.h"
#include "launcher/common/confine/protect.h"
#include "launcher/common/wire/steps.h"

namespace caisson::confine {

struct Verified {
  nlohmann::json facts;                       // of /proc/<pid>/status and ns/
  MechanismPlan mechanisms[kMechanismCount];  // the plan's, corrected by what was seen
};

// Looks up beforehand what verification compares with.
void verify_prepare();

// Namespaces, mounts and what is covered, as facts for verify_session: they stay as they are once the last mount is made,
// because nobody but our own code has run in them yet. Errors: internal, naming the fact that is not so.
// `prepared_mounts`: the mount namespace of the template that it was made from, which it must not be in itself; -1: none.
// `known`: the mount table of another session of that template.
[[nodiscard]] Result<nlohmann::json> verify_namespaces(const Plan& plan, pid_t pid, const Protection& protection,
                                                       int prepared_mounts = -1, KnownMounts* known = nullptr);

// `pid`: the session's first process, with nothing left to do but executing caisson-init, or after that. Errors: as above.
[[nodiscard]] Result<Verified> verify_session(const Plan& plan, pid_t pid, const std::vector<StepRecord>& steps,
                                              nlohmann::json namespaces);

// The mechanisms with their state and with what each was verified by: steps whose post-condition held, facts of /proc, canary
// probes. `canary`: nullptr for the states alone.
[[nodiscard]] nlohmann::json mechanisms_json(const Plan& plan, const Verified& verified, const std::vector<StepRecord>& steps,
                                             const ProbeResults* canary);

// The session's report: each mechanism's state, with what it was verified by, and what remains open
// (launcher/common/attest/README.md).
[[nodiscard]] nlohmann::json report_json(const Plan& plan, const Verified& verified,
                                         const std::vector<StepRecord>& template_steps, const std::vector<StepRecord>& steps,
                                         const ProbeResults* canary = nullptr);
[[nodiscard]] nlohmann::json timings_json(const std::vector<StepRecord>& steps);  // step -> microseconds

}  // namespace caisson::confine
