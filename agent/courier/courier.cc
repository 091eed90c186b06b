#include "agent/courier/courier.h"

#include <algorithm>
#include <random>

namespace caisson::courier {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMostBatches = 8;
constexpr unsigned kAttempts = 3;
constexpr milliseconds kFetchLimit{10'000}, kLeastPause{1'000}, kLongestPause{60'000};

std::string why(const Error& error) { return error.text().substr(0, kMaxWhy); }

Result<std::string> set_of(Result<Answer> answer) {
  if (!answer) return std::unexpected(std::move(answer).error());
  if (answer->status != 200) return fail(Code::io, "the server answers " + std::to_string(answer->status));
  return std::move(answer->body);
}

}  // namespace

Courier::Courier(const asio::any_io_executor& executor, Fd socket, Destinations destinations)
    : line_(executor, std::move(socket)), wanted_(executor, 1), spans_(executor, kMostBatches) {
  if (destinations.keys) keys_.emplace(std::move(*destinations.keys), kFetchLimit);
  if (!destinations.collector) return;
  collector_.emplace(std::move(destinations.collector->url), destinations.collector->limit);
  headers_ = std::move(destinations.collector->headers);
}

task<void> Courier::serve() {
  for (;;) {
    CO_TRY_ASSIGN(Message order, co_await line_.receive());
    CO_TRY(take(std::move(order)));
  }
}

Status Courier::take(Message order) {
  const boost::system::error_code none;
  const Head head = order.head;
  if (head.type == Type::fetch_keys && order.text.empty() && keys_) {
    (void)wanted_.try_send(none, 0);
    return {};
  }
  if (head.type != Type::post_spans || order.text.empty() || !collector_) return fail(Code::protocol, "not an order");
  if (spans_.try_send(none, std::move(order))) return {};
  // A full line is the agent's fault, which then counts less than it lost.
  (void)line_.try_send(Head(Type::spans_lost, head.number), "too many wait");
  return {};
}

// With jitter, so that many containers do not come at once after their issuer was away.
milliseconds Courier::pause(unsigned failures) const {
  if (failures == 0) return kLeastPause;
  static std::minstd_rand random{std::random_device{}()};
  const milliseconds longest = std::min(kLeastPause * (1U << std::min(failures, 6U)), kLongestPause);
  return milliseconds(std::uniform_int_distribution<milliseconds::rep>(longest.count() / 2, longest.count())(random));
}

task<void> Courier::fetch_keys() {
  Clock::time_point next{};
  for (unsigned failures = 0;;) {
    auto [error, order] = co_await wanted_.async_receive(as_values);
    if (error) co_return asio_error("wait for orders", error);
    if (const auto now = Clock::now(); now < next) co_await sleep_for(std::chrono::ceil<milliseconds>(next - now));
    auto set = set_of(co_await keys_->exchange(Ask()));
    failures = set ? 0 : failures + 1;
    next = Clock::now() + pause(failures);
    if (set) CO_TRY(co_await tell_keys(std::move(*set)));
    else CO_TRY(co_await line_.send(Head(Type::keys_failed, 0), why(set.error())));
  }
}

task<void> Courier::post_spans() {
  for (;;) {
    auto [error, order] = co_await spans_.async_receive(as_values);
    if (error) co_return asio_error("wait for orders", error);
    const Status posted = co_await post(std::move(order.text));
    const Head head(posted ? Type::spans_posted : Type::spans_lost, order.head.number);
    CO_TRY(co_await line_.send(head, posted ? "" : why(posted.error())));
  }
}

// The protocol calls 429, 502, 503, 504 and a missing answer retryable. Batches that come during the retries wait, or are lost.
task<void> Courier::post(std::string body) {
  for (unsigned attempt = 1;; ++attempt) {
    Ask ask;
    ask.method = "POST";
    ask.body = body;
    ask.content_type = "application/json";
    ask.headers = headers_;
    auto answer = co_await collector_->exchange(std::move(ask));
    const unsigned status = answer ? answer->status : 0;
    if (status >= 200 && status < 300) co_return Status{};
    const bool again = !answer || status == 429 || (status >= 502 && status <= 504);
    Error error = answer ? fail(Code::io, "the collector answers " + std::to_string(status)).error() : answer.error();
    if (!again || attempt == kAttempts) co_return std::unexpected(std::move(error));
    const milliseconds asked = answer ? milliseconds(answer->retry_after) : milliseconds(0);
    co_await sleep_for(std::max(asked, pause(attempt)));
  }
}

task<void> Courier::tell_keys(std::string set) {
  std::string_view rest = set;
  do {
    std::string part(rest.substr(0, kMaxText));
    rest.remove_prefix(part.size());
    CO_TRY(co_await line_.send(Head(Type::keys, static_cast<std::uint32_t>(rest.size())), std::move(part)));
  } while (!rest.empty());
  co_return Status{};
}

}  // namespace caisson::courier
