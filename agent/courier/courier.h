// Courier: takes the agent's orders from the line and carries each out at the address that the operator gave, and no other. An
// agent that says anything else ends it (Code::protocol); the launcher starts the next one, later each time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <boost/asio/experimental/channel.hpp>

#include "agent/courier/client.h"
#include "agent/courier/destinations.h"
#include "agent/courier/line.h"

namespace caisson::courier {

class Courier {
 public:
  Courier(const asio::any_io_executor& executor, Fd socket, Destinations destinations);

  // Until the line is of no use.
  [[nodiscard]] task<void> serve();
  // What carries the orders out, one at a time.
  [[nodiscard]] task<void> fetch_keys();
  [[nodiscard]] task<void> post_spans();

 private:
  // The set may be asked for once a second; after failures in a row later, up to once a minute.
  [[nodiscard]] std::chrono::milliseconds pause(unsigned failures) const;
  [[nodiscard]] Status take(Message order);
  [[nodiscard]] task<void> post(std::string body);
  [[nodiscard]] task<void> tell_keys(std::string set);

  Line line_;
  std::optional<Client> keys_;
  std::optional<Client> collector_;
  std::vector<std::pair<std::string, std::string>> headers_;                  // for the collector
  asio::experimental::channel<void(boost::system::error_code, int)> wanted_;  // one at most: a second order is the same
  asio::experimental::channel<void(boost::system::error_code, Message)> spans_;
};

}  // namespace caisson::courier
