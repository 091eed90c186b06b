// Request and answer of /v1/display/record.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "agent/routes/schema.h"

namespace caisson::routes {

struct DisplayRecordRequest {
  std::string action;
  std::optional<std::string> save_path;
  std::int64_t fps = 5;
  std::int64_t crf = 28;
  double max_duration = 600;
  std::optional<std::int64_t> width, height;
};
struct DisplayRecordResult {
  std::string status = "idle";
  std::optional<std::string> save_path;
  double duration = 0;
  std::optional<std::int64_t> file_size_bytes;
};

inline constexpr std::array<std::string_view, 3> kFilmActions = {"start", "stop", "status"};
inline constexpr std::array<std::string_view, 3> kFilmStates = {"idle", "recording", "stopped"};

template <>
struct Schema<DisplayRecordRequest> {
  static constexpr std::string_view name = "DisplayRecordRequest";
  static constexpr auto fields = std::tuple{
      field("action", &DisplayRecordRequest::action, "start, stop or status").one_of(kFilmActions),
      field("save_path", &DisplayRecordRequest::save_path, "The film; without it /tmp/recordings/recording_{time}.mp4"),
      field("fps", &DisplayRecordRequest::fps, "Pictures a second, 1 to 30").max(30).defaulted(),
      field("crf", &DisplayRecordRequest::crf, "H.264's quality, 0 is the best and 51 the worst").min(0).max(51).defaulted(),
      field("max_duration", &DisplayRecordRequest::max_duration, "Seconds, after which it ends by itself").defaulted(),
      field("width", &DisplayRecordRequest::width, "Pixels, up to 4096; those of the screen without it"),
      field("height", &DisplayRecordRequest::height, "Pixels, up to 4096; those of the screen without it")};
};
template <>
struct Schema<DisplayRecordResult> {
  static constexpr std::string_view name = "DisplayRecordResult";
  static constexpr auto fields =
      std::tuple{field("status", &DisplayRecordResult::status, "idle, recording or stopped").one_of(kFilmStates),
                 field("save_path", &DisplayRecordResult::save_path, "The film"),
                 field("duration", &DisplayRecordResult::duration, "Seconds").defaulted(),
                 field("file_size_bytes", &DisplayRecordResult::file_size_bytes, "Of the film so far")};
};

}  // namespace caisson::routes
