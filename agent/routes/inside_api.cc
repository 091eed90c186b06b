#include "agent/routes/inside_api.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "agent/auth/gate.h"
#include "agent/http/log.h"
#include "agent/http/server.h"

namespace caisson::routes {
namespace {

// Servers that people start have other ports. Where it is taken, the kernel chooses another, and the variable says which.
constexpr std::uint16_t kInsidePort = 8079;

Result<std::string> url_of(const Fd& listener) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0 || at.sin_family != AF_INET)
    return sys_error("the address of a listening socket");
  return "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

}  // namespace

task<InsideApi::Door> InsideApi::make(Key key) {
  CO_TRY_ASSIGN(std::vector<Fd> made, co_await launcher_.workspace_listen(key.first, kInsidePort));
  Fd listener = std::move(key.second ? made.back() : made.front());
  Door door;
  CO_TRY_ASSIGN(door.url, url_of(listener));
  CO_TRY_ASSIGN(door.open, server_.serve_inside(std::move(listener), key.first));
  co_return std::move(door);
}

asio::awaitable<bridge::Environment> InsideApi::variables(std::shared_ptr<bridge::SessionHandle> session) {
  bridge::Environment out;
  const bridge::Openings::Opening opening = co_await openings_.of(session->domain);
  if (opening.api.empty() || session->isolated) co_return out;
  const Key key(session->workspace, opening.goes_out);
  const auto deadline = bridge::Clock::now() + bridge::Openings::kPatience;
  auto [at, absent] = doors_.try_emplace(key);
  if (absent) {
    auto made = co_await make(key);
    if (!made) log::warn("programs of workspace " + quote(key.first) + " cannot use the API: " + made.error().text());
    const bool here = made || made.error().code == Code::unavailable;  // else the next command tries again
    if (here) doors_[key] = std::make_shared<Door>(made ? std::move(*made) : Door());
    else doors_.erase(key);
    changed_.notify_all();
  }
  for (;;) {
    const auto found = doors_.find(key);
    if (found == doors_.end()) co_return out;
    if (found->second != nullptr && found->second->url.empty()) co_return out;
    if (found->second != nullptr) {
      out["AIO_API_URL"] = found->second->url;
      out["AIO_TOKEN"] = gate_.session_token(session->workspace, session->domain);
      co_return out;
    }
    const bool told = co_await changed_.wait_until(deadline);
    if (!told) co_return out;
  }
}

void InsideApi::workspace_ended(const std::string& name) {
  std::erase_if(doors_, [&name](const auto& door) { return door.first.first == name; });
  changed_.notify_all();
}

}  // namespace caisson::routes
