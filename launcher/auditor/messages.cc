#include "launcher/auditor/messages.h"

#include <algorithm>
#include <cstring>

namespace caisson::auditor {

std::optional<Order> parse_order(std::string_view message, std::size_t descriptors) {
  Head head;
  if (message.size() < sizeof head || message.size() > kMaxMessage) return std::nullopt;
  std::memcpy(&head, message.data(), sizeof head);
  if (head.size != message.size() - sizeof head || head.session[sizeof head.session - 1] != '\0') return std::nullopt;
  if (head.type != Type::watch && head.type != Type::release && head.type != Type::observer) return std::nullopt;
  if (descriptors != (head.type == Type::release ? 0U : 1U)) return std::nullopt;
  return Order{head.type, head.session, message.substr(sizeof head)};
}

std::string Outbox::next() {
  std::string out;
  for (count_ = 0; count_ < std::min(parts_.size(), kMostParts); ++count_) {
    if (count_ > 0 && out.size() + parts_[count_].size() > kMaxMessage) break;
    out += parts_[count_];
  }
  return out;
}

}  // namespace caisson::auditor
