#include "launcher/common/confine/step_error.h"

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/fork_refusal.h"

namespace caisson::confine {

Error step_error(const Plan& plan, const StepRecord& record) {
  const auto index = static_cast<std::size_t>(record.step);
  if (index >= static_cast<std::size_t>(kStepCount)) return {Code::internal, "unknown step"};
  std::string what = kSteps[index].name;
  const std::size_t entry = record.entry;
  if ((record.step == Step::sources || record.step == Step::binds) && entry < plan.binds.size())
    what += " " + quote(plan.binds[entry].source);
  if (record.step == Step::hide && entry < plan.hide.size()) what += " " + quote(plan.hide[entry]);
  if (record.step == Step::root && entry < plan.directories.size()) what += " " + quote(plan.directories[entry]);
  if (record.step == Step::files && entry < plan.files.size()) what += " " + quote(plan.files[entry].first);
  if (record.step == Step::files && entry != kNoEntry && entry >= plan.files.size() &&
      entry - plan.files.size() < plan.links.size())
    what += " " + quote(plan.links[entry - plan.files.size()].first);
  if (record.step == Step::landlock_rules && entry < plan.landlock.size()) what += " " + quote(plan.landlock[entry].path);
  if (record.error == ESTALE) what += " (the path was replaced while the session was being built)";
  if (record.step == Step::pid || record.step == Step::limits) what += fork_refusal(record.error);
  return sys_error(std::move(what), record.error).error();
}

}  // namespace caisson::confine
