#include "launcher/egress/door/inside_line.h"

#include <cerrno>
#include <cstring>

namespace caisson::egress {

Task<Dialed> InsideLine::connect(std::uint64_t workspace, std::uint16_t port) {
  const Inside asked{.id = ++last_id_, .port = port, .error = 0};
  PendingDial pending(poll_, pending_, asked.id);
  if (!launcher_.tell(Said::inside, workspace, message_of(asked))) pending.dialed.refusal = Refusal::dialer;
  if (pending.dialed.refusal != Refusal::none) co_return std::move(pending.dialed);
  const bool told = co_await pending.told;
  if (!told) pending.dialed.error = ETIMEDOUT;
  pending.dialed.address = Address{.bytes = {127, 0, 0, 1}, .v6 = false};
  co_return std::move(pending.dialed);
}

bool InsideLine::heard(std::string_view text, std::vector<Fd> fds) {
  Inside answer;
  if (text.size() != sizeof answer || fds.size() > 1) return false;
  std::memcpy(&answer, text.data(), sizeof answer);
  if ((answer.error == 0) == fds.empty()) return false;
  const auto it = pending_.find(answer.id);
  if (it == pending_.end()) return true;
  it->second->dialed.error = answer.error;
  if (!fds.empty()) it->second->dialed.fd = std::move(fds.front());
  it->second->told.tell();
  return true;
}

}  // namespace caisson::egress
