#include "agent/routes/router.h"

#include <algorithm>
#include <functional>

namespace caisson::routes {
namespace {

bool is_param(std::string_view segment) { return segment.starts_with('{'); }

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> out;
  while (path.size() > 1) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    out.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  if (!out.empty() && path == "/") out.emplace_back();  // as in a request's target, it is another resource
  return out;
}

bool matches(const std::vector<std::string_view>& pattern, const std::vector<std::string>& segments) {
  return std::ranges::equal(pattern, segments, [](std::string_view wanted, std::string_view given) {
    return is_param(wanted) ? !given.empty() : wanted == given;
  });
}

}  // namespace

Router::Router(const std::vector<const Route*>& table) {
  for (const Route* route : table) {
    Row row{route, split(route->path), 0};
    row.fixed = static_cast<std::size_t>(std::ranges::count_if(row.pattern, [](std::string_view s) { return !is_param(s); }));
    const auto place = std::ranges::upper_bound(rows_, row.fixed, std::ranges::greater{}, &Row::fixed);
    rows_.insert(place, std::move(row));
  }
}

Match Router::find(http::Method method, const std::vector<std::string>& segments) const {
  Match match;
  std::string_view named;
  const http::Method wanted = method == http::Method::head ? http::Method::get : method;
  for (const Row& row : rows_) {
    if (!matches(row.pattern, segments)) continue;
    // Only methods of the most exact pattern count: /sessions/create has no DELETE, even if a session has that name.
    if (named.empty()) named = row.route->path;
    if (named == row.route->path) match.allowed.push_back(row.route->method);
    if (match.route != nullptr || row.route->method != wanted) continue;
    match.route = row.route;
    for (std::size_t i = 0; i < row.pattern.size(); ++i)
      if (is_param(row.pattern[i])) match.params.emplace_back(row.pattern[i].substr(1, row.pattern[i].size() - 2), segments[i]);
  }
  return match;
}

std::string allow_header(const std::vector<http::Method>& allowed) {
  std::vector<std::string_view> names;
  for (const http::Method method : allowed) names.push_back(http::method_name(method));
  if (std::ranges::find(allowed, http::Method::get) != allowed.end()) names.push_back("HEAD");
  names.push_back("OPTIONS");
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  std::string out;
  for (const std::string_view name : names) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

}  // namespace caisson::routes
