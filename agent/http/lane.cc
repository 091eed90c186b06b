#include "agent/http/lane.h"

#include <algorithm>
#include <tuple>

#include <boost/asio/post.hpp>

namespace caisson::http {
namespace {

// The longest rest, for work that took long only because the machine was busy.
constexpr std::chrono::milliseconds kLongestRest{100};

}  // namespace

struct Lane::Waiting {
  Waiting(std::shared_ptr<Lane> of, Budget::PayerPtr client_, Budget::PayerPtr workspace_)
      : lane(std::move(of)),
        client(std::move(client_)),
        workspace(std::move(workspace_)),
        called(lane->rest_.get_executor(), Clock::time_point::max()) {
    lane->waiting_.push_back(this);
  }
  ~Waiting() {
    std::erase(lane->waiting_, this);
    if (granted) lane->release();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  const std::shared_ptr<Lane> lane;
  const Budget::PayerPtr client, workspace;
  asio::steady_timer called;
  bool granted = false;  // and not taken yet
};

asio::awaitable<Lane::Turn> Lane::take(std::shared_ptr<Lane> lane, Budget::PayerPtr client, Budget::PayerPtr workspace) {
  Waiting me(lane, std::move(client), std::move(workspace));
  lane->next();
  while (!me.granted) co_await me.called.async_wait(as_values);
  me.granted = false;
  co_return Turn(std::move(lane));
}

void Lane::begin(Budget::Payer& client, Budget::Payer& workspace) {
  busy_ = true;
  since_ = Clock::now();
  client.last_turn = workspace.last_turn = ++turns_;
}

void Lane::release() {
  const auto now = Clock::now();
  busy_ = false;
  rest_until_ = now + std::min<Clock::duration>(now - since_, kLongestRest);
  next();
}

void Lane::next() {
  if (busy_ || resting_ || waiting_.empty()) return;
  if (Clock::now() < rest_until_) {
    resting_ = true;
    rest_.expires_at(rest_until_);
    const auto rested = [weak = weak_from_this()](const boost::system::error_code&) {
      const std::shared_ptr<Lane> self = weak.lock();
      if (!self) return;
      self->resting_ = false;
      self->next();
    };
    rest_.async_wait(rested);
    return;
  }
  const auto rank = [](const Waiting* one) { return std::tuple(one->client->last_turn, one->workspace->last_turn); };
  Waiting* const first = *std::ranges::min_element(waiting_, {}, rank);  // among equals the first to come
  std::erase(waiting_, first);
  begin(*first->client, *first->workspace);
  first->granted = true;
  first->called.cancel();
}

namespace {

// At most this many handlers run before the one that has paused for longest: long work, too, gets its share of a busy thread.
constexpr int kOthers = 64;

bool running = false;
std::list<asio::steady_timer*> paused;

}  // namespace

struct Paused {
  explicit Paused(const asio::any_io_executor& executor) : timer(executor, asio::steady_timer::time_point::max()) {
    paused.push_back(&timer);
  }
  ~Paused() { std::erase(paused, &timer); }  // if it was cancelled
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;
  asio::steady_timer timer;
};

asio::awaitable<void> pause() {
  const auto executor = co_await asio::this_coro::executor;
  if (!running) {
    co_await asio::post(executor, asio::use_awaitable);
    co_return;
  }
  Paused me(executor);
  co_await me.timer.async_wait(as_values);
}

void run(asio::io_context& io) {
  running = true;
  while (!io.stopped()) {
    int others = 0;
    while (others < kOthers && io.poll_one() > 0) ++others;
    if (!paused.empty()) {
      paused.front()->cancel();
      paused.pop_front();
    } else if (others < kOthers) {
      io.run_one();
    }
  }
  running = false;
}

}  // namespace caisson::http
