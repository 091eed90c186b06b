#include "agent/metrics/registry.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace caisson::metrics {
namespace {

constexpr std::string_view kTypes[] = {"counter", "gauge", "histogram", "summary"};

std::string number_text(double value) {
  char text[32];
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.9g", value);
  return text;
}

// A backslash, a quotation mark or a line break would end the value or the line.
void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\') out += "\\\\";
    else if (c == '\n') out += "\\n";
    else if (c == '"' && quotes) out += "\\\"";
    else out += c;
  }
}

void append_sample(std::string& out, std::string_view name, std::string_view suffix, std::string_view labels, std::string_view le,
                   double value) {
  out.append(name).append(suffix);
  if (!labels.empty() || !le.empty()) {
    out.append("{").append(labels);
    if (!le.empty()) out.append(labels.empty() ? "" : ",").append("le=\"").append(le).append("\"");
    out += '}';
  }
  out.append(" ").append(number_text(value)).append("\n");
}

}  // namespace

Registry::Series* Registry::find(Id id, const Labels& labels) {
  auto& known = series_[static_cast<std::size_t>(id)];
  Key key;
  std::ranges::transform(labels, key.begin(), [](std::string_view label) { return std::string(label); });
  if (const auto it = known.find(key); it != known.end()) return &it->second;
  if (count_ >= kMostSeries) {
    ++series_[static_cast<std::size_t>(Id::dropped_series)][Key{}].value;
    return nullptr;
  }
  ++count_;
  return &known[std::move(key)];
}

void Registry::add(Id id, const Labels& labels, double value) {
  if (Series* series = find(id, labels)) series->value += value;
}

void Registry::set(Id id, const Labels& labels, double value) {
  if (Series* series = find(id, labels)) series->value = value;
}

void Registry::observe(Id id, const Labels& labels, std::chrono::nanoseconds took) {
  Series* series = find(id, labels);
  if (series == nullptr) return;
  const double seconds = std::chrono::duration<double>(took).count();
  series->value += seconds;
  ++series->count;
  const auto bucket = std::ranges::lower_bound(kBounds, seconds);
  if (bucket != kBounds.end()) ++series->buckets[static_cast<std::size_t>(bucket - kBounds.begin())];
}

void Registry::clear(Id id) {
  auto& known = series_[static_cast<std::size_t>(id)];
  count_ -= std::min(count_, known.size());
  known.clear();
}

double Registry::value(Id id, const Labels& labels) const {
  const auto& known = series_[static_cast<std::size_t>(id)];
  Key key;
  std::ranges::transform(labels, key.begin(), [](std::string_view label) { return std::string(label); });
  const auto it = known.find(key);
  if (it == known.end()) return 0;
  return row_of(id).type >= Type::histogram ? static_cast<double>(it->second.count) : it->second.value;
}

void Registry::write(std::string& out, const Row& row, const Key& key, const Series& series) {
  std::string labels;
  for (std::size_t i = 0; i < key.size() && !row.labels[i].empty(); ++i) {
    labels.append(labels.empty() ? "" : ",").append(row.labels[i]).append("=\"");
    append_escaped(labels, key[i], true);
    labels += '"';
  }
  if (row.type == Type::counter || row.type == Type::gauge)
    return append_sample(out, row.name, row.type == Type::counter ? "_total" : "", labels, "", series.value);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kBounds.size() && row.type == Type::histogram; ++i) {
    below += series.buckets[i];
    append_sample(out, row.name, "_bucket", labels, number_text(kBounds[i]), static_cast<double>(below));
  }
  if (row.type == Type::histogram) append_sample(out, row.name, "_bucket", labels, "+Inf", static_cast<double>(series.count));
  append_sample(out, row.name, "_sum", labels, "", series.value);
  append_sample(out, row.name, "_count", labels, "", static_cast<double>(series.count));
}

std::string Registry::text(Format format) const {
  const bool open = format == Format::openmetrics;
  std::string out;
  for (const Row& row : kRows) {
    // In the older format a family of counters has the name of its samples.
    const std::string family = std::string(row.name) + (row.type == Type::counter && !open ? "_total" : "");
    out.append("# HELP ").append(family).append(" ");
    append_escaped(out, row.help, open);
    out.append("\n# TYPE ").append(family).append(" ").append(kTypes[static_cast<std::size_t>(row.type)]).append("\n");
    if (open && !row.unit.empty()) out.append("# UNIT ").append(family).append(" ").append(row.unit).append("\n");
    const auto& known = series_[static_cast<std::size_t>(row.id)];
    // A counter without labels that has counted nothing is 0, so that its first increase is seen.
    if (known.empty() && row.labels[0].empty() && row.type == Type::counter) write(out, row, {}, {});
    for (const auto& [key, series] : known) write(out, row, key, series);
  }
  if (open) out += "# EOF\n";
  return out;
}

Registry& registry() {
  static Registry one;
  return one;
}

std::string table_text() {
  std::string out = "| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const Row& row : kRows) {
    std::string labels;
    for (const std::string_view label : row.labels)
      if (!label.empty()) labels.append(labels.empty() ? "`" : ", `").append(label).append("`");
    out.append("| `").append(row.name).append(row.type == Type::counter ? "_total" : "").append("` | ");
    out.append(kTypes[static_cast<std::size_t>(row.type)]).append(" | ").append(labels.empty() ? "–" : labels);
    out.append(" | ").append(row.help).append(" |\n");
  }
  return out;
}

}  // namespace caisson::metrics
