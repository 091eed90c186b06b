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

task<void> InsideApi::make(Key key, std::shared_ptr<Door> door) {
  CO_TRY_ASSIGN(std::vector<Fd> made, co_await launcher_.workspace_listen(key.first, kInsidePort));
  Fd listener = std::move(key.second ? made.back() : made.front());
  CO_TRY_ASSIGN(std::string url, url_of(listener));
  CO_TRY_ASSIGN(door->open, server_.serve_inside(std::move(listener), key.first));
  door->url = std::move(url);
  co_return Status{};
}

// One command makes it; those that come meanwhile wait.
asio::awaitable<std::shared_ptr<const InsideApi::Door>> InsideApi::door_of(Key key) {
  std::shared_ptr<Door>& place = doors_[key];
  const std::shared_ptr<Door> door = place ? place : std::make_shared<Door>();
  if (!place) {
    place = door;
    const Status made = co_await make(key, door);
    door->settled = true;
    changed_.notify_all();
    if (!made) log::warn("programs of workspace " + quote(key.first) + " cannot use the API: " + made.error().text());
    // Where the workspace has no network of its own it will never have one; anything else the next command tries again.
    const auto still = doors_.find(key);
    if (!made && made.error().code != Code::unavailable && still != doors_.end() && still->second == door) doors_.erase(still);
  }
  const auto deadline = bridge::Clock::now() + bridge::Openings::kPatience;
  while (!door->settled && bridge::Clock::now() < deadline) {
    const bool told = co_await changed_.wait_until(deadline);
    if (!told) break;
  }
  co_return door;
}

asio::awaitable<bridge::Environment> InsideApi::variables(std::shared_ptr<bridge::SessionHandle> session) {
  bridge::Environment out;
  const bridge::Openings::Opening opening = co_await openings_.of(session->domain);
  if (opening.api.empty() || session->isolated) co_return out;
  Key key(session->workspace, opening.goes_out);
  const std::shared_ptr<const Door> door = co_await door_of(std::move(key));
  if (door->url.empty()) co_return out;
  out["AIO_API_URL"] = door->url;
  out["AIO_TOKEN"] = gate_.session_token(session->workspace, session->domain);
  co_return out;
}

void InsideApi::workspace_ended(const std::string& name) {
  std::erase_if(doors_, [&name](const auto& door) { return door.first.first == name; });
}

}  // namespace caisson::routes
