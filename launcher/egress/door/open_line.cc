#include "launcher/egress/door/open_line.h"

#include "launcher/common/egress/protocol.h"
#include "launcher/egress/door/connection.h"

namespace caisson::egress {

void OpenLine::set_peer(Fd fd) {
  opener_.reset();
  // It has nothing to say.
  opener_ = std::make_unique<Link>(poll_, std::move(fd), [](std::string_view, std::vector<Fd>) { return false; }, [] {});
}

bool OpenLine::hand_over(Connection& connection, const HostPort& place) {
  const std::string host = host_text(place.host);
  const std::string &domain = connection.whose.way->domain, &session = connection.whose.session;
  const OpenRequest request{.workspace = connection.workspace.id,
                            .port = place.port,
                            .host_bytes = static_cast<std::uint16_t>(host.size()),
                            .domain_bytes = static_cast<std::uint16_t>(domain.size()),
                            .session_bytes = static_cast<std::uint16_t>(session.size())};
  std::string message = message_of(request, host + domain + session + connection.ahead);
  if (!opener_ || !opener_->open() || !opener_->room() || message.size() > kMaxText) return false;
  return opener_->say(std::move(message), connection.client.take(), connection.upstream->take());
}

}  // namespace caisson::egress
