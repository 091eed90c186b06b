#include "agent/proxy/pool.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace caisson::proxy {
namespace {

constexpr std::chrono::milliseconds kPoolLook{25};

// Neither bytes nor an end have come.
bool is_quiet(asio::ip::tcp::socket& socket) {
  char byte = 0;
  return ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

Pool::Waiting::Waiting(Pool& pool, const Place& place) : pool_(pool), place_(place) {
  auto& all = pool_.waiting_[place_];
  at_ = all.insert(all.end(), PoolClock::now());
}

Pool::Waiting::~Waiting() {
  const auto all = pool_.waiting_.find(place_);
  all->second.erase(at_);
  if (all->second.empty()) pool_.waiting_.erase(all);
}

bool Pool::is_wanted_elsewhere(const Place& place, PoolClock::time_point now) const {
  const auto all = waiting_.find(place);
  return all != waiting_.end() && now - all->second.front() > kPatience;
}

std::optional<Pool::Socket> Pool::take(const Place& place) {
  if (is_wanted_elsewhere(place, PoolClock::now())) return std::nullopt;
  for (auto at = kept_.end(); at != kept_.begin();) {
    --at;
    if (at->place != place) continue;
    Socket socket = std::move(at->socket);
    at = kept_.erase(at);
    if (is_quiet(socket)) return socket;
  }
  return std::nullopt;
}

void Pool::keep(const Place& place, Socket socket, std::uint64_t born) {
  const PoolClock::time_point now = PoolClock::now();
  if (born != age_ || is_wanted_elsewhere(place, now) || !is_quiet(socket)) return;
  const auto of_port = std::ranges::count(kept_, place, &Kept::place);
  const auto of_workspace = std::ranges::count_if(kept_, [&](const Kept& one) { return one.place.workspace == place.workspace; });
  if (static_cast<std::size_t>(of_port) >= kOfPort || static_cast<std::size_t>(of_workspace) >= kOfWorkspace) return;
  if (kept_.size() >= kAll) kept_.pop_front();
  kept_.push_back({place, std::move(socket), now});
  look_later();
}

void Pool::forget(const std::string& workspace) {
  ++age_;
  std::erase_if(kept_, [&](const Kept& one) { return one.place.workspace == workspace; });
}

void Pool::look_later() {
  if (timed_) return;
  timed_ = true;
  timer_.expires_after(kPoolLook);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // this is gone
    timed_ = false;
    look();
    if (!kept_.empty()) look_later();
  });
}

void Pool::look() {
  const PoolClock::time_point now = PoolClock::now();
  std::erase_if(
      kept_, [&](Kept& one) { return now - one.since >= kIdle || is_wanted_elsewhere(one.place, now) || !is_quiet(one.socket); });
}

}  // namespace caisson::proxy
