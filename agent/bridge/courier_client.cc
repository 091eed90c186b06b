#include "agent/bridge/courier_client.h"

namespace caisson::bridge {

using courier::Message;
using courier::Type;

task<void> CourierClient::listen() {
  for (;;) {
    Result<Message> message = co_await line_.receive();
    if (message) take(std::move(*message));
    else if (message.error().code != Code::protocol) co_return std::unexpected(std::move(message).error());
  }
}

void CourierClient::take(Message message) {
  if (message.head.type == Type::keys) take_part(message);
  if (message.head.type == Type::spans_posted) posted(message.head.number, Status());
  if (message.head.type == Type::spans_lost)
    posted(message.head.number, fail(Code::io, message.text.substr(0, courier::kMaxWhy)));
  if (message.head.type == Type::keys_failed && on_keys) on_keys(fail(Code::io, message.text.substr(0, courier::kMaxWhy)));
}

bool CourierClient::post_spans(const std::string& body, std::uint32_t count) {
  if (!line_.try_send({Type::post_spans, count}, body)) return false;
  ++posts_;
  return true;
}

// A killed courier reports nothing about the spans that it had, so the count may stay too high.
void CourierClient::posted(std::uint32_t count, const Status& done) {
  if (posts_ > 0) --posts_;
  if (posts_ == 0) settled_.cancel();
  if (on_spans) on_spans(count, done);
}

asio::awaitable<void> CourierClient::settle(std::chrono::milliseconds limit) {
  if (posts_ == 0) co_return;
  settled_.expires_after(limit);
  (void)co_await settled_.async_wait(as_values);
}

// A courier that ended in the middle of a set was followed by one that begins anew.
void CourierClient::take_part(const Message& message) {
  const std::size_t more = message.head.number;
  if (more > courier::kMaxAnswer || message.text.size() > courier::kMaxAnswer - more) return;
  if (message.text.size() + more != expected_) set_.clear();
  set_ += message.text;
  expected_ = more;
  if (more > 0) return;
  if (on_keys) on_keys(std::exchange(set_, {}));
  set_.clear();
}

}  // namespace caisson::bridge
