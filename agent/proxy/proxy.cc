#include "agent/proxy/proxy.h"

#include "agent/proxy/relay.h"

namespace caisson::proxy {
namespace {

constexpr std::chrono::milliseconds kTurnPoll{20};
constexpr std::chrono::seconds kTurnWait{10};

}  // namespace

class Proxy::Connecting {
 public:
  Connecting(Proxy& proxy, const std::string& workspace) : counts_(proxy.connecting_), workspace_(workspace) {
    ++counts_[workspace_];
  }
  ~Connecting() {
    if (const auto at = counts_.find(workspace_); --at->second == 0) counts_.erase(at);
  }
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

 private:
  std::map<std::string, std::size_t>& counts_;
  const std::string workspace_;
};

Proxy::Slot::Slot(Proxy& proxy, std::string workspace) : proxy_(proxy), workspace_(std::move(workspace)) {
  std::size_t& count = proxy_.requests_[workspace_];
  granted_ = count < kRequests;
  if (granted_) ++count;
}

Proxy::Slot::~Slot() {
  if (!granted_) return;
  if (const auto at = proxy_.requests_.find(workspace_); --at->second == 0) proxy_.requests_.erase(at);
}

task<asio::ip::tcp::socket> Proxy::connect(std::string workspace, std::uint16_t port) {
  const auto deadline = Clock::now() + kTurnWait;
  const auto is_full = [&] {
    const auto at = connecting_.find(workspace);
    return at != connecting_.end() && at->second >= kConnecting;
  };
  while (is_full()) {
    if (Clock::now() >= deadline) co_return fail(Code::timeout, "wait for other connections to the workspace");
    co_await sleep_for(kTurnPoll);
  }
  const Connecting one(*this, workspace);
  CO_TRY_ASSIGN(Fd fd, co_await launcher_.workspace_connect(std::move(workspace), port));
  asio::ip::tcp::socket socket(launcher_.executor());
  boost::system::error_code error;
  socket.assign(asio::ip::tcp::v4(), fd.get(), error);
  if (error) co_return asio_error("take a connection", error);
  (void)fd.release();
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  socket.non_blocking(true, error);
  co_return std::move(socket);
}

std::unique_ptr<http::Exchange> Proxy::exchange(http::Request request, Destination to, bool drop_authorization,
                                                std::string workspace, std::shared_ptr<void> kept) {
  return std::make_unique<Relay>(*this, std::move(request), std::move(to), drop_authorization, std::move(workspace),
                                 std::move(kept));
}

}  // namespace caisson::proxy
