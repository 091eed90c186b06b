// Requests of /v1/file/watch, by the contract's names. Its answers are untyped there.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"

namespace caisson::routes {

struct CreateWatchRequest {
  std::string path;
  bool recursive = true;
  // Optional, so that a given list replaces the default instead of extending it.
  std::optional<std::vector<std::string>> exclude =
      std::vector<std::string>{".git", "node_modules", "__pycache__", ".venv", "*.pyc", "*.pyo", ".DS_Store", "*.swp", "*.swo"};
  std::int64_t debounce = 300;
  std::optional<std::vector<std::string>> include_patterns = std::vector<std::string>();
};
struct PollRequest {
  std::int64_t cursor = 0, limit = 100, timeout = 0;
};
inline constexpr std::array<std::string_view, 5> kEventTypes = {"create", "write", "remove", "rename", "chmod"};
struct WatchWaitRequest {
  std::string path;
  std::int64_t timeout = 30;
  std::optional<std::vector<std::string>> event_types = std::vector<std::string>(kEventTypes.begin(), kEventTypes.end());
};

template <>
struct Schema<CreateWatchRequest> {
  static constexpr std::string_view name = "CreateWatchRequest";
  static constexpr auto fields = std::tuple{
      field("path", &CreateWatchRequest::path, "Directory or file; a relative path starts at the home"),
      field("recursive", &CreateWatchRequest::recursive, "Directories below as well").defaulted(),
      field("exclude", &CreateWatchRequest::exclude, "Names or patterns to leave out").defaulted(),
      field("debounce", &CreateWatchRequest::debounce, "Milliseconds in which changes of one path become one")
          .min(50)
          .max(5000)
          .defaulted(),
      field("include_patterns", &CreateWatchRequest::include_patterns, "Patterns of the paths to report; none: all").defaulted()};
};
template <>
struct Schema<PollRequest> {
  static constexpr std::string_view name = "PollRequest";
  static constexpr auto fields =
      std::tuple{field("cursor", &PollRequest::cursor, "Cursor of the last answer; later events are returned").min(0).defaulted(),
                 field("limit", &PollRequest::limit, "Events at most").min(1).max(1000).defaulted(),
                 field("timeout", &PollRequest::timeout, "Seconds to wait for one; 0: do not wait").min(0).max(60).defaulted()};
};
template <>
struct Schema<WatchWaitRequest> {
  static constexpr std::string_view name = "WatchWaitRequest";
  static constexpr auto fields =
      std::tuple{field("path", &WatchWaitRequest::path, "The file; it need not exist yet"),
                 field("timeout", &WatchWaitRequest::timeout, "Seconds at most").min(1).max(300).defaulted(),
                 field("event_types", &WatchWaitRequest::event_types, "The events to wait for").one_of(kEventTypes).defaulted()};
};

}  // namespace caisson::routes
