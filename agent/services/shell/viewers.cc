#include "agent/services/shell/viewers.h"

#include <algorithm>

namespace caisson::services {

void Viewers::Viewer::acknowledge(std::uint64_t offset) {
  offset = std::min(offset, sent);
  if (offset <= acknowledged) return;
  acknowledged = offset;
  stalled_since.reset();
}

void Viewers::Viewer::skip_to(std::uint64_t offset) { sent = acknowledged = std::max(sent, offset); }

Viewers::ViewerPtr Viewers::join(std::uint64_t offset, bool waited_for) {
  // Those that were cut wait no longer: with somebody here, only the present count.
  if (waited_for) std::erase_if(viewers_, [](const ViewerPtr& v) { return v->cut_at.has_value(); });
  Viewer made;
  made.sent = made.acknowledged = offset;
  made.waited_for = waited_for;
  return viewers_.emplace_back(std::make_shared<Viewer>(made));
}

void Viewers::leave(const ViewerPtr& viewer, bool cut, Clock::time_point now) {
  const bool others = std::ranges::any_of(viewers_, [&](const ViewerPtr& v) { return v != viewer && v->waited_for; });
  // One of several that left is not waited for, so a client cannot pile up entries here.
  if (cut && viewer->waited_for && !others) viewer->cut_at = now;
  else std::erase(viewers_, viewer);
}

std::size_t Viewers::present() const {
  return static_cast<std::size_t>(std::ranges::count_if(viewers_, [](const ViewerPtr& v) { return !v->cut_at; }));
}

std::optional<Viewers::Clock::time_point> Viewers::waits_until(std::uint64_t end, Clock::time_point now) {
  std::erase_if(viewers_, [&](const ViewerPtr& v) { return v->cut_at && now - *v->cut_at >= kPatience; });
  std::optional<Clock::time_point> until;
  for (const ViewerPtr& viewer : viewers_) {
    if (!viewer->waited_for) continue;
    if (end < viewer->acknowledged + kWindowBytes) return std::nullopt;
    if (!viewer->stalled_since) viewer->stalled_since = now;
    const Clock::time_point patient_until = viewer->cut_at.value_or(*viewer->stalled_since) + kPatience;
    if (patient_until > now) until = std::max(until.value_or(patient_until), patient_until);
  }
  return until;
}

}  // namespace caisson::services
