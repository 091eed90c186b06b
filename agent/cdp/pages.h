// The last page is never gone: who closes it, a client or the person at the screen, finds an empty one in its place. A browser
// without a page has no window, and most clients cannot make their first page then. Told by Target.setDiscoverTargets on the root
// session.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "agent/cdp/scan.h"

namespace caisson::cdp {

class Pages {
 public:
  static constexpr std::string_view kDiscover = R"({"discover":true,"filter":[{"type":"page"}]})";
  static constexpr std::size_t kMaxPages = 64 * 1024;

  // True: that was the last page, and a new one is due.
  [[nodiscard]] bool heard(std::string_view method, std::string_view params) {
    if (method == "Target.targetCreated") {
      const std::string_view id = inner_string(inner_value(params, "targetInfo"), "targetId");
      if (!id.empty() && id.size() <= 128 && pages_.size() < kMaxPages) pages_.emplace(id);
      return false;
    }
    if (method != "Target.targetDestroyed") return false;
    const auto it = pages_.find(inner_string(params, "targetId"));
    if (it == pages_.end()) return false;
    pages_.erase(it);
    return pages_.empty();
  }
  void clear() { pages_.clear(); }

 private:
  std::set<std::string, std::less<>> pages_;
};

}  // namespace caisson::cdp
