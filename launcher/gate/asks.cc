// What sessions were refused because no rule names it: it becomes a question, and what was decided is told to door and dialer.
#include <cstring>

#include "launcher/common/base/sys.h"
#include "launcher/gate/gate.h"

namespace caisson::gate {

void Gate::decide(const Entry& entry, const Lines::From& from, const std::string& op, const json::Value& request,
                  const Lines::Reply& reply) {
  Workspace& workspace = entry->second;
  Asking decided = workspace.asking;
  const auto done = decided.decide(op, request, workspace.settings.lists(), from.operator_, sys::monotonic_us());
  if (!done) return reply(std::unexpected(done.error()));
  json::Value record = *done;
  record["workspace"] = workspace.name;
  // Nothing is allowed that is not on record. A rule for the policy allows nothing.
  if (!done->contains("rule") && !tell(Told::start, json::dump(record)))
    return reply(fail(Code::unavailable, "the launcher takes no record at this moment: nothing was decided, try again"));
  workspace.asking = std::move(decided);
  tell_grants(entry);
  reply(*done);
}

void Gate::propose(Workspace& workspace, json::Value& record) const {
  const auto session = json::get_string(record, "session");
  const auto programs = [&] { return session && *session ? members_.programs(**session) : json::Value::array(); };
  const auto id = workspace.asking.refused(record, workspace.settings.lists(), programs, sys::monotonic_us());
  if (id != 0) record["asked"] = id;
}

void Gate::heard_used(const Entry& entry, std::string_view text) {
  egress::Used used{};
  if (text.size() != sizeof used) return;
  std::memcpy(&used, text.data(), sizeof used);
  entry->second.asking.used(used.grant);
}

}  // namespace caisson::gate
