#include "agent/http/places.h"

#include "agent/http/server.h"

namespace caisson::http {
namespace {

std::size_t count_in(const Places::Counts& counts, const std::string& name) {
  const auto at = counts.find(name);
  return at == counts.end() ? 0 : at->second;
}

}  // namespace

Places::Held Places::take(const Exchange& exchange, const Limits& limits) {
  if (exchange.owner.empty() || exchange.immediate) return {};
  Held held;
  if (count_in(owners_, exchange.owner) >= limits.under_way_of_one) held.full = Full::owner;
  else if (count_in(workspaces_, exchange.workspace) >= limits.under_way_of_workspace) held.full = Full::workspace;
  const std::string both = exchange.owner + " " + exchange.workspace;
  const bool relayed = exchange.relayed && exchange.narrow;
  if (relayed && count_in(relayed_, both) >= limits.relayed_of_narrow) held.full = Full::previews;
  if (held.full) return held;
  return {.owner = One(owners_, exchange.owner),
          .workspace = One(workspaces_, exchange.workspace),
          .relayed = relayed ? One(relayed_, both) : One(),
          .full = std::nullopt};
}

Response no_place(Places::Full full) {
  const std::string who = full == Places::Full::workspace ? "This workspace" : "This credential";
  const std::string what = full == Places::Full::previews ? "requests to servers of the workspace" : "requests and connections";
  Response response = error_response(full == Places::Full::workspace ? 503 : 429, who + " has too many " + what + " under way");
  response.headers = {{"retry-after", "1"}};
  return response;
}

}  // namespace caisson::http
