// The revisions of MCP that are spoken, decided for each request. Up to 2025-11-25 a client first says `initialize` and then
// names the revision in a header; since 2026-07-28 each request says everything about itself, in its `_meta` and in headers that
// must equal it.
#pragma once

#include <array>

#include "agent/http/request.h"
#include "agent/services/mcp/message.h"

namespace caisson::mcp {

enum class Revision { v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 };
inline constexpr std::array<std::string_view, 4> kRevisions = {"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"};

[[nodiscard]] constexpr std::string_view revision_name(Revision revision) {
  return kRevisions[static_cast<std::size_t>(revision)];
}
// The request stands for itself: no `initialize`, no session.
[[nodiscard]] constexpr bool is_stateless(Revision revision) { return revision >= Revision::v2026_07_28; }

// The revision of a message, from its headers and `_meta`. Failures (status 400): a revision that is not spoken, headers that
// differ from the body, a stateless request without its `_meta`.
[[nodiscard]] Or<Revision> revision_of(const http::Request& request, const Message& message);

// What `initialize` is answered with: the revision that the client asks for if it is spoken, else the newest that has
// `initialize`.
[[nodiscard]] Revision negotiated(std::string_view asked);

}  // namespace caisson::mcp
