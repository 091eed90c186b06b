#include "launcher/gate/figures.h"

#include <algorithm>
#include <string>
#include <utility>

namespace caisson::gate {
namespace {

constexpr const char* kNames[] = {"ended", "failed", "names", "up", "down"};
// More than a door can have counted: whoever took it over may say anything, but not make a sum run over.
constexpr std::int64_t kMost = std::int64_t{1} << 50;

std::uint64_t number_of(const json::Value& from, const char* name) {
  const auto number = json::get_int(from, name);
  return number && *number && **number > 0 ? static_cast<std::uint64_t>(std::min(**number, kMost)) : 0;
}

// A number that is less than before is one that began anew.
void add(std::uint64_t& sum, std::uint64_t& last, std::uint64_t now) {
  sum += now >= last ? now - last : now;
  last = now;
}

std::string_view name_of(std::size_t refusal) { return word(words(egress::Refusal{}), refusal); }

}  // namespace

void Figures::take(std::uint64_t workspace, const json::Value& figures) {
  const auto known = last_.find(workspace);
  if (known == last_.end() || !figures.is_object()) return;
  Counts& last = known->second;
  for (std::size_t i = 0; i < kCounters; ++i) add(counters_[i], last.counters[i], number_of(figures, kNames[i]));
  last.open = number_of(figures, "open");
  const auto refused = figures.find("refused");
  if (refused == figures.end() || !refused->is_object()) return;
  for (std::size_t i = 1; i < kRefusals; ++i)
    add(refused_[i], last.refused[i], number_of(*refused, std::string(name_of(i)).c_str()));
}

void Figures::take_dropped(const json::Value& dropped) {
  if (!dropped.is_object()) return;
  dropped_ += number_of(dropped, "connections");
  for (std::size_t i = 1; i < kRefusals; ++i) dropped_ += number_of(dropped, std::string(name_of(i)).c_str());
}

json::Value Figures::shown() const {
  std::uint64_t open = 0;
  for (const auto& [workspace, last] : last_) open += last.open;
  json::Value refused = json::Value::object(), alarms = {{"own_port", own_port_}};
  for (std::size_t i = 1; i < kRefusals; ++i) {
    refused[std::string(name_of(i))] = refused_[i];
    if (is_alarm(static_cast<egress::Refusal>(i))) alarms[std::string(name_of(i))] = refused_[i];
  }
  json::Value out = {{"open", open}, {"dropped", dropped_}, {"refused", std::move(refused)}, {"alarms", std::move(alarms)}};
  for (std::size_t i = 0; i < kCounters; ++i) out[kNames[i]] = counters_[i];
  return out;
}

}  // namespace caisson::gate
