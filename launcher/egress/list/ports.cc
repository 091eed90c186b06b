#include "launcher/egress/list/ports.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace caisson::egress {
namespace {

// Every way out has these, so that whoever asks is told why not.
constexpr std::uint16_t kAlways[] = {80, 443, 53, 22};

// What rules that allow name, the narrowest first; each once.
std::vector<Ports> ranges(std::span<const List* const> lists) {
  std::vector<Ports> out;
  for (const List* list : lists)
    for (const Rule& rule : list->rules)
      if (!rule.deny) out.insert(out.end(), rule.ports.begin(), rule.ports.end());
  std::ranges::sort(out, {}, [](const Ports& p) { return std::tuple(p.last - p.first, p.first); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

NamedPorts named_ports(std::span<const List* const> lists, std::uint16_t door) {
  NamedPorts out{{std::begin(kAlways), std::end(kAlways)}};
  for (const Ports& range : ranges(lists)) {
    for (unsigned port = std::max<unsigned>(range.first, 1); port <= range.last; ++port) {
      const auto number = static_cast<std::uint16_t>(port);
      if (std::ranges::find(out.ports, number) != out.ports.end()) continue;
      out.all = out.all && number != door && out.ports.size() < kMostPorts;
      if (out.ports.size() == kMostPorts) return out;
      if (number != door) out.ports.push_back(number);
    }
  }
  return out;
}

NamedPorts named_ports(const Lists& lists, std::uint16_t door) {
  std::vector<const List*> all;
  for (const auto& [domain, list] : lists.of) all.push_back(list.get());
  return named_ports(all, door);
}

std::string ports_text(std::vector<std::uint16_t> ports) {
  std::ranges::sort(ports);
  std::string out;
  for (std::size_t first = 0, next = 0; first < ports.size(); first = next) {
    while (++next < ports.size() && ports[next] == ports[next - 1] + 1) {
    }
    out += (out.empty() ? "" : ", ") + std::to_string(ports[first]);
    if (next - first > 1) out += "-" + std::to_string(ports[next - 1]);
  }
  return out;
}

}  // namespace caisson::egress
