#include "agent/services/mcp/message_stream.h"

#include <algorithm>

#include "agent/services/mcp/message.h"

namespace caisson::services {
namespace {

constexpr std::size_t kFreeBytes = 64 * 1024;

}  // namespace

void MessageStream::keep(std::string text) {
  bytes_ += text.size();
  events_.push_back({next_++, std::move(text)});
  while (events_.size() > 1 && (bytes_ > kMostBytes || events_.size() > kMostMessages || !has_room())) {
    bytes_ -= events_.front().text.size();
    events_.pop_front();
  }
  changed.notify_all();
}

bool MessageStream::has_room() { return share_.resize(bytes_ > kFreeBytes ? bytes_ : 0) == http::Room::granted; }

void MessageStream::push(const json::Value& message) {
  if (!over_) keep(json::dump(message));
}

void MessageStream::finish(const json::Value& message) {
  if (over_) return;
  over_ = true;
  keep(json::dump(message));
  if (has_room()) return;
  const mcp::Failure why{.code = mcp::ErrorCode::internal, .text = "the workspace has no room for the answer"};
  bytes_ = 0;
  events_.back().text = json::dump(mcp::error_message(message["id"], why));
}

const MessageStream::Event* MessageStream::after(std::uint64_t number) const {
  const auto found = std::ranges::upper_bound(events_, number, {}, &Event::number);
  return found == events_.end() ? nullptr : &*found;
}

}  // namespace caisson::services
