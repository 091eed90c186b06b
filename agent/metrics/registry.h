// Registry: the values of the metrics. The process has one, as it has one log, because the places that count share nothing else.
// Single-threaded. Bounded: once there are kMostSeries, a further combination of labels is dropped and counted.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "agent/metrics/metric_table.h"

namespace caisson::metrics {

// Values in the order of the row's labels, from closed lists only.
using Labels = std::array<std::string_view, 3>;

class Registry {
 public:
  static constexpr std::size_t kMostSeries = 4096;
  // Upper bounds in seconds. A request takes a millisecond, a fresh session tens of them, a command as long as it likes.
  static constexpr std::array<double, 12> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30};

  void add(Id id, const Labels& labels = {}, double value = 1);
  void set(Id id, const Labels& labels, double value);
  void observe(Id id, const Labels& labels, std::chrono::nanoseconds took);
  // Forgets the series of a gauge, before it is measured anew.
  void clear(Id id);
  [[nodiscard]] double value(Id id, const Labels& labels = {}) const;  // of a histogram or summary: the count

  enum class Format { prometheus, openmetrics };
  [[nodiscard]] std::string text(Format format) const;

 private:
  struct Series {
    double value = 0;  // of a histogram: the sum
    std::uint64_t count = 0;
    std::array<std::uint64_t, kBounds.size()> buckets{};  // not cumulative
  };
  using Key = std::array<std::string, 3>;
  [[nodiscard]] Series* find(Id id, const Labels& labels);
  static void write(std::string& out, const Row& row, const Key& key, const Series& series);

  std::array<std::map<Key, Series>, kMetrics> series_;
  std::size_t count_ = 0;
};

[[nodiscard]] Registry& registry();

// The rows as a table of Markdown, for agent/README.md.
[[nodiscard]] std::string table_text();

// Measures from its construction.
class Stopwatch {
 public:
  [[nodiscard]] std::chrono::nanoseconds elapsed() const { return std::chrono::steady_clock::now() - since_; }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace caisson::metrics
