// The end of what a credential opened, when the credential ends.
#include "agent/http/connection_impl.h"

namespace caisson::http {
namespace {

// A client may keep sending until it has answered the closing handshake, or for ever if it does not answer.
task<void> abort_later(std::weak_ptr<WebSocket::Transport> transport, std::chrono::milliseconds grace) {
  co_await sleep_for(grace);
  if (const auto still = transport.lock()) still->abort();
  co_return Status{};
}

}  // namespace

Response credential_ended() {
  Response response = error_response(401, "Unauthorized: the credential has ended or was revoked while the request came");
  response.headers = {{"www-authenticate", "Bearer realm=\"caisson\", error=\"invalid_token\""}};
  return response;
}

task<void> close_websocket(std::shared_ptr<WebSocket::Transport> transport, std::uint16_t code, std::string why) {
  co_return co_await transport->close(code, std::move(why));
}

void Connection::recheck() {
  if (exchange_ == nullptr || lost_ || exchange_->still_allowed()) return;
  if (const auto socket = socket_.lock()) {
    lost_ = true;
    spawn(stream_.get_executor(), "websocket close", close_websocket(socket, 1008, "the credential has ended or was revoked"));
    spawn(stream_.get_executor(), "websocket abort", abort_later(socket, limits_.close_grace));
  } else if (streaming_ || exchange_->relayed || exchange_->streamed_body) {
    lost_ = true;
    peer_->gone = true;  // its handler stops sending
    close();
  }
}

task<void> recheck_credentials(std::shared_ptr<Server::State> state) {
  while (!state->stopping) {
    state->recheck.expires_after(state->limits.recheck);
    co_await state->recheck.async_wait(as_values);
    for (Connection* connection : std::vector(state->open)) connection->recheck();
  }
  co_return Status{};
}

}  // namespace caisson::http
