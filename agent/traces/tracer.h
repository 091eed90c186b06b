// Tracer: begins a span for each request that is to have one, and hands on those that have ended in batches, bounded in bytes,
// number and time. It never waits: spans without room are dropped and counted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/traces/span.h"

namespace caisson::traces {

struct TracerSettings {
  std::string service = "caisson";  // OTEL_SERVICE_NAME
  // Takes a body with so many spans. False: it has no room.
  std::function<bool(const std::string& body, std::uint32_t spans)> post = {};
  std::function<void(std::uint32_t spans)> dropped = {};  // told of those that had none
};

class Tracer {
 public:
  static constexpr std::size_t kMostBytes = 96 * 1024;
  static constexpr std::uint32_t kMostSpans = 256;
  static constexpr std::chrono::milliseconds kLongest{1'000};

  Tracer(const boost::asio::any_io_executor& executor, TracerSettings settings)
      : timer_(executor), settings_(std::move(settings)) {}

  // For a request with these headers, "" for none. nullptr: the client asks not to record it.
  [[nodiscard]] std::shared_ptr<Span> begin(std::string_view traceparent, std::string_view tracestate) const;
  void end(Span& span);
  void flush();

 private:
  void add(std::string text, std::uint32_t spans);

  boost::asio::steady_timer timer_;
  TracerSettings settings_;
  std::string batch_;
  std::uint32_t count_ = 0;
};

}  // namespace caisson::traces
