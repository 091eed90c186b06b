// Requests and answers of /v1/browser/takeover and /v1/browser/info.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "agent/routes/schema.h"

namespace caisson::routes {

struct TakeoverRequest {
  std::string mode = "shared";
  std::int64_t seconds = 600;
  bool view_only = false;
};
struct TakeoverLink {
  std::string url, mode, until;
  std::optional<std::string> ticket;
  bool view_only = false;
};
struct TakeoverStatus {
  bool active = false;
  std::optional<std::string> mode, until;
  std::optional<bool> view_only;
};
struct Viewport {
  std::int64_t width = 0, height = 0;
};
struct BrowserInfo {
  std::string user_agent, cdp_url, vnc_url;
  std::optional<std::string> cdp_ui_url;
  Viewport viewport;
  std::optional<Viewport> page_viewport;
};

inline constexpr std::array<std::string_view, 2> kTakeoverModes = {"shared", "exclusive"};

template <>
struct Schema<TakeoverRequest> {
  static constexpr std::string_view name = "TakeoverRequest";
  static constexpr auto fields = std::tuple{
      field(
          "mode", &TakeoverRequest::mode,
          "shared: a person beside the clients of the API; exclusive: alone, and actions, pictures, page operations and CDP wait")
          .one_of(kTakeoverModes)
          .defaulted(),
      field("seconds", &TakeoverRequest::seconds, "It ends by itself").min(1).max(3600).defaulted(),
      field("view_only", &TakeoverRequest::view_only, "The address only shows the screen").defaulted()};
};
template <>
struct Schema<TakeoverLink> {
  static constexpr std::string_view name = "TakeoverLink";
  static constexpr auto fields =
      std::tuple{field("url", &TakeoverLink::url, "The screen as a page, for a person"),
                 field("ticket", &TakeoverLink::ticket, "In that address; null where no key is needed, or it makes none"),
                 field("mode", &TakeoverLink::mode, "shared or exclusive"), field("until", &TakeoverLink::until, "RFC 3339, UTC"),
                 field("view_only", &TakeoverLink::view_only, "The address only shows the screen")};
};
template <>
struct Schema<TakeoverStatus> {
  static constexpr std::string_view name = "TakeoverStatus";
  static constexpr auto fields = std::tuple{field("active", &TakeoverStatus::active, "A person was given the browser"),
                                            field("mode", &TakeoverStatus::mode, "shared or exclusive"),
                                            field("until", &TakeoverStatus::until, "RFC 3339, UTC"),
                                            field("view_only", &TakeoverStatus::view_only, "The address only shows the screen")};
};
template <>
struct Schema<Viewport> {
  static constexpr std::string_view name = "BrowserViewport";
  static constexpr auto fields =
      std::tuple{field("width", &Viewport::width, "Pixels"), field("height", &Viewport::height, "Pixels")};
};
template <>
struct Schema<BrowserInfo> {
  static constexpr std::string_view name = "BrowserInfoResult";
  static constexpr auto fields =
      std::tuple{field("user_agent", &BrowserInfo::user_agent, "Of its requests"),
                 field("cdp_url", &BrowserInfo::cdp_url, "The DevTools protocol by WebSocket"),
                 field("vnc_url", &BrowserInfo::vnc_url, "The screen as a page"),
                 field("cdp_ui_url", &BrowserInfo::cdp_ui_url, "null: the screen is shown by VNC alone"),
                 field("viewport", &BrowserInfo::viewport, "The screen"),
                 field("page_viewport", &BrowserInfo::page_viewport, "The page in the first tab; null where it does not answer")};
};

}  // namespace caisson::routes
