// A plan as the builder takes it (common/wire/build_plan.h).
#pragma once

#include <string>
#include <vector>

#include "launcher/common/confine/plan.h"
#include "launcher/common/confine/seccomp.h"
#include "launcher/common/wire/build_plan.h"

namespace caisson::confine {

// Refers to the plan and the program, which must live as long.
struct BuildRows {
  BuildRows(const Plan& plan, const Program& filter);
  BuildRows(const BuildRows&) = delete;
  BuildRows& operator=(const BuildRows&) = delete;

  std::vector<builder::Bind> binds;
  std::vector<const char*> directories, hide;
  std::vector<builder::File> files, links;
  std::vector<builder::Rule> landlock;
  std::vector<builder::Limit> limits;
  builder::BuildPlan plan;
};

}  // namespace caisson::confine
