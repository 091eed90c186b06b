// The auditor's end of the protocol (common/wire/auditor_protocol.h): what comes from the launcher, checked; what goes to it, in
// parts.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/wire/auditor_protocol.h"

namespace caisson::auditor {

struct Order {
  Type type;
  std::string session;
  std::string_view text;
};
// nullopt: not a message of the launcher's, or without the descriptor that belongs to it.
[[nodiscard]] std::optional<Order> parse_order(std::string_view message, std::size_t descriptors);

// Parts that wait to be sent, in order.
class Outbox {
 public:
  static constexpr std::size_t kMost = 512;      // parts; beyond, calls are counted until the launcher has read
  static constexpr std::size_t kMostParts = 16;  // of one message: what the launcher writes in one turn of its loop
  void put(std::string text) { parts_.push_back(std::move(text)); }
  [[nodiscard]] bool room() const { return parts_.size() < kMost; }
  [[nodiscard]] bool empty() const { return parts_.empty(); }
  [[nodiscard]] std::size_t size() const { return parts_.size(); }
  // The next message, of whole parts; taken() when it has been sent.
  [[nodiscard]] std::string next();
  void taken() { parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(count_)); }

 private:
  std::deque<std::string> parts_;
  std::size_t count_ = 0;  // of next()
};

}  // namespace caisson::auditor
