#include "launcher/gate/recent.h"

#include <string>

#include "launcher/common/base/sys.h"

namespace caisson::gate {
namespace {

constexpr const char* kMembers[] = {"session", "domain", "via",   "host",   "port", "address", "rule", "why",   "refusal",
                                    "detail",  "error",  "ended", "status", "up",   "down",    "ms",   "alarm", "method"};

}  // namespace

void Recent::add(const json::Value& record, bool refused) {
  json::Value kept = {{"time", sys::rfc3339(sys::realtime_ns())}, {"refused", refused}};
  for (const char* member : kMembers) {
    const auto value = record.find(member);
    if (value == record.end() || value->is_structured()) continue;
    kept[member] = *value;
    if (value->is_string() && value->get_ref<const std::string&>().size() > kMostText)
      kept[member] = value->get_ref<const std::string&>().substr(0, kMostText);
  }
  if (json::dump(kept).size() > kMostBytes) return;  // no record that door or opener make
  records_.push_front(std::move(kept));
  if (records_.size() > kMost) records_.pop_back();
}

json::Value Recent::shown() const {
  json::Value out = json::Value::array();
  for (const json::Value& record : records_) out.push_back(record);
  return out;
}

}  // namespace caisson::gate
