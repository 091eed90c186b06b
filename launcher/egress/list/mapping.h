// A mapping leads requests of plain HTTP for a host to another server: one of the workspace's own, on its loopback, or another
// that the list permits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/pattern.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxMappings = 64, kMaxMappingText = 512, kMaxMappingBytes = 12 * 1024;  // each text; all of them

struct Mapping {
  std::string source, target;  // as they were written
  Pattern host;                // of requests that it is about: a name, "*.name", or an address
  std::uint16_t port = 80;
  std::string path = "/";  // what the request's path begins with; ends with '/', or the path has to end or go on with one there
  bool inside = true;      // to the workspace's own loopback
  Host to_host;            // where it is not
  std::uint16_t to_port = 0;
  std::optional<std::string> to_path;  // what stands in the place of `path`
};
// source: "[http://]host[:port][/path]"; a host may begin with "*.", a path may end with "*". target: "[host:]port[/path]" or
// ":port[/path]", without a host, or with localhost or 127.0.0.1, the workspace's own loopback. Errors (invalid_argument) say
// what is wrong.
[[nodiscard]] Result<Mapping> read_mapping(std::string_view source, std::string_view target);
// What it says of where it leads: "127.0.0.1:3000".
[[nodiscard]] std::string place_text(const Mapping& mapping);

using Mappings = std::vector<Mapping>;
// The most exact one for this request, or nullptr. target: of the request, in origin form, with its query.
[[nodiscard]] const Mapping* find_mapping(const Mappings& mappings, const Host& host, std::uint16_t port,
                                          std::string_view target);
// Whether some request to that host may have one.
[[nodiscard]] bool may_be_mapped(const Mappings& mappings, const Host& host, std::uint16_t port);
// The request's target as it is sent there.
[[nodiscard]] std::string mapped_target(const Mapping& mapping, std::string_view target);

// How caisson-gate tells the door: two lines each. Whatever is none is refused.
[[nodiscard]] std::string mapping_bytes(const Mappings& mappings);
[[nodiscard]] Result<Mappings> read_mappings(std::string_view bytes);

}  // namespace caisson::egress
