// The last records of a workspace, for whoever looks at it while it happens. The log has all of them.
#pragma once

#include <deque>

#include "launcher/common/base/json.h"

namespace caisson::gate {

class Recent {
 public:
  // What is answered stays below way::kMaxMessage: so many, of so many bytes.
  static constexpr std::size_t kMost = 60, kMostBytes = 1000, kMostText = 200;
  void add(const json::Value& record, bool refused);
  // The newest first.
  [[nodiscard]] json::Value shown() const;

 private:
  std::deque<json::Value> records_;
};

}  // namespace caisson::gate
