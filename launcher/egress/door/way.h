// The way out of a domain's sessions in a workspace: its list, and what its connections may take together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "launcher/egress/door/limits.h"
#include "launcher/egress/list/list.h"

namespace caisson::egress {

struct Way {
  const std::string domain;
  std::shared_ptr<const List> list = nullptr;
  std::optional<Admission> admission = {};
  std::shared_ptr<ByteBudget> bytes = nullptr;  // connections go on with the one they began with
  std::size_t connections = 0;
};

// Counts as one of the way's connections until the last copy goes: what is still decided about, too, so that dials at the same
// time do not pass the limit.
inline std::shared_ptr<const void> counted(const std::shared_ptr<Way>& way) {
  ++way->connections;
  return {way.get(), [way](const void*) { --way->connections; }};
}

// Whose a connection is. `way` is nullptr where its sessions have none.
struct Member {
  std::string session;  // "": sessions are not told apart here
  std::shared_ptr<Way> way;
};

}  // namespace caisson::egress
