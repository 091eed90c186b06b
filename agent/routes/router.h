// Router: finds the row of the route table for a method and a decoded path. Fixed segments compare whole and decoded, so
// an encoded slash never matches one; of several matches the row with the most fixed segments wins.
#pragma once

#include <string>
#include <vector>

#include "agent/routes/route.h"

namespace caisson::routes {

struct Match {
  const Route* route = nullptr;  // nullptr: no row has this path with this method
  http::Pairs params;
  std::vector<http::Method> allowed;  // the path's methods; empty: the path is unknown
};

class Router {
 public:
  explicit Router(const std::vector<const Route*>& table);
  // HEAD is answered by the GET row.
  [[nodiscard]] Match find(http::Method method, const std::vector<std::string>& segments) const;

 private:
  struct Row {
    const Route* route;
    std::vector<std::string_view> pattern;
    std::size_t fixed;
  };
  std::vector<Row> rows_;  // most fixed segments first
};

// The value of an Allow header: "GET, HEAD, OPTIONS, POST".
[[nodiscard]] std::string allow_header(const std::vector<http::Method>& allowed);

}  // namespace caisson::routes
