#include "launcher/pid1/session/uids.h"

#include "launcher/pid1/session/host.h"

namespace caisson::session {

Result<uid_t> Uids::take(const Workspace& workspace) {
  const confine::Features& features = host_.features;
  if (features.user_ns.ok() || !features.change_uid.ok() || !workspace.is_default()) return workspace.place.outer_uid;
  // Not from the first: what sessions of an earlier launcher have left is most likely none of these.
  const auto offset = static_cast<uid_t>(std::stoul(host_.boot_id.substr(0, 6), nullptr, 16));
  if (given_ < kMost) return kFirst + (offset + given_++) % kMost;
  if (free_.empty()) return fail(Code::limit, "no free uid for a session");
  const uid_t uid = free_.front();
  free_.pop_front();
  return uid;
}

void Uids::give_back(uid_t uid) {
  if (uid >= kFirst && uid < kFirst + kMost) free_.push_back(uid);
}

}  // namespace caisson::session
