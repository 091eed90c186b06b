// What a client may not ask, whatever session it names: the one table. A browser-level session reaches the whole browser, and the
// multiplexer keeps clients apart by their sessions only; so what reaches beyond a session's own has a row here. Methods without
// a row pass. README.md says which of those touch what clients share, and why they pass.
#pragma once

#include <algorithm>
#include <string_view>

namespace caisson::cdp {

enum class Decision {
  pass,
  leave,   // answered {}, and this client is let go: for it, the browser has ended
  refuse,  // answered with an error that says why
};

struct MethodRow {
  std::string_view name;  // with a `*` at its end: every method that begins so
  Decision decision;
  std::string_view why;
};

inline constexpr MethodRow kMethods[] = {
    // Only the operator's restart ends the browser.
    {"Browser.close", Decision::leave, "the browser goes on without this client"},
    {"Browser.crash*", Decision::leave, "the browser goes on without this client"},
    // A page would hold a browser-level session that no client owns; it would not pass this table and would not end with the
    // client.
    {"Target.exposeDevToolsProtocol", Decision::refuse, "pages get no protocol of their own here"},
    // A message inside a string is not seen by this table: it could be Browser.close for a session that was attached without
    // `flatten`.
    {"Target.sendMessageToTarget", Decision::refuse, "attach with flatten: true and use sessionId"},
    // An extension outlives its client and reaches the pages of all. A debugging port does not offer this domain either.
    {"Extensions.*", Decision::refuse, "extensions are the operator's to choose"},
    // These would make the browser connect to, or listen on, ports for more of the protocol.
    {"Target.setRemoteLocations", Decision::refuse, "no other browser is reached from here"},
    {"Tethering.*", Decision::refuse, "no port is opened here"},
};

[[nodiscard]] constexpr bool matches(std::string_view pattern, std::string_view method) {
  if (!pattern.ends_with('*')) return pattern == method;
  pattern.remove_suffix(1);
  return method.starts_with(pattern);
}

// nullptr: it passes.
[[nodiscard]] constexpr const MethodRow* decision_about(std::string_view method) {
  const auto* row = std::ranges::find_if(kMethods, [&](const MethodRow& r) { return matches(r.name, method); });
  return row == std::end(kMethods) ? nullptr : row;
}

}  // namespace caisson::cdp
