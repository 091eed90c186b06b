// /websockify and /vnc/websockify: the screen of the workspace by VNC (RFC 6143, in WebSocket messages as noVNC has them). The X
// server listens at a UNIX socket of its session; each viewer is a relay in there. A viewer who only watches (`view_only`, or a
// credential of `browser:read`) is held to it here: of its messages only requests for pictures reach the X server.
#include "agent/routes/relay_socket.h"
#include "agent/routes/table.h"
#include "agent/services/desktop/watcher_filter.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

constexpr WireLimits kVncLimits{.most_message = 32ULL * 1024 * 1024, .last_words = "the screen has ended", .protocol = "rfb"};

class VncWire final : public Wire {
 public:
  explicit VncWire(bool watches) : watches_(watches) {}
  [[nodiscard]] task<void> send_down(http::WebSocket socket, std::string bytes) override {
    http::WebSocketPiece piece{.data = std::move(bytes), .binary = true, .last = true};
    return socket.send_piece(std::move(piece));
  }
  [[nodiscard]] Result<std::string> for_program(http::WebSocketPiece piece) override {
    if (!piece.binary) return fail(Code::protocol, "VNC needs binary frames");
    if (watches_) return filter_.pass(piece.data);
    return std::move(piece.data);
  }

 private:
  const bool watches_;
  services::WatcherFilter filter_;
};

bool only_watches(const Call& call) {
  if (!call.principal.bounds.scopes.permits(scope_name(Scope::browser), auth::Access::all)) return true;
  const auto asked = call.request.query_value("view_only");
  return asked && *asked != "0" && *asked != "false";
}

// Describes the viewer for the session's audit log, which records the viewer's beginning and end.
std::string note_of(const Call& call, bool watches) {
  const auto takeover = call.services.workspace->takeover.current();
  return std::string(watches ? "view-only" : "control") + ", takeover " +
         (!takeover             ? "none"
          : takeover->exclusive ? "exclusive"
                                : "shared") +
         ", by " + quote(call.principal.name);
}

// The screen shows the browser: a viewer finds it there, and sees the screen alone where it does not start. Workspaces are there
// as long as the agent.
task<void> show_browser(services::Workspace* workspace) {
  (void)co_await workspace->browser.session();
  co_return Status{};
}

task<void> view(Call call, http::WebSocket socket) {
  const bool watches = only_watches(call);
  services::Workspace* const workspace = call.services.workspace;
  auto relay = co_await workspace->desktop.view(note_of(call, watches));
  if (!relay) co_return co_await socket.close(1011, relay.error().text());
  spawn((*relay)->program()->executor(), "browser for a viewer", show_browser(workspace));
  co_return co_await join(std::move(*relay), std::move(socket), std::make_shared<VncWire>(watches), kVncLimits);
}

using http::Method;

constexpr Route kVnc[] = {
    {Method::get, "/websockify", "websockify", Scope::browser, kHidden | kViews, Unknown::ignore,
     "The screen, by VNC in a WebSocket", bind_websocket<view>()},
    {Method::get, "/vnc/websockify", "websockify_of_the_page", Scope::browser, kHidden | kViews, Unknown::ignore,
     "The same, where some clients look for it", bind_websocket<view>()},
};

}  // namespace

Area vnc_routes() { return kVnc; }

}  // namespace caisson::routes
