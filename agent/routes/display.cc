// /v1/display/record: a film of the whole screen (services/desktop/recorder.h).
#include "agent/routes/display_types.h"
#include "agent/routes/file_errors.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes {
namespace {

using services::FilmState;

constexpr std::int64_t kMostSide = 4096;  // of a picture that ffmpeg may be asked for
constexpr FileOperation kSaveFilm{"write", "Failed to write file"};

json::Value film_result(const std::optional<FilmState>& state) {
  if (!state) return encode(DisplayRecordResult());
  return encode(DisplayRecordResult{.status = state->recording ? "recording" : "stopped",
                                    .save_path = state->path,
                                    .duration = state->seconds,
                                    .file_size_bytes = static_cast<std::int64_t>(state->bytes)});
}

http::Response film_response(const std::optional<FilmState>& state) {
  if (state && !state->problem.empty()) return http::fail("The film ended: " + state->problem, film_result(state));
  return http::ok(film_result(state));
}

task<http::Response> start_film(Call call, DisplayRecordRequest body) {
  services::FilmWish wish{.path = body.save_path.value_or(""),
                          .fps = body.fps,
                          .crf = body.crf,
                          .most_seconds = body.max_duration,
                          .width = body.width,
                          .height = body.height};
  if (wish.path.empty()) wish.path = "/tmp/recordings/recording_" + std::to_string(sys::realtime_ns() / 1'000'000) + ".mp4";
  const std::string path = wish.path;
  services::Recorder& recorder = call.services.workspace->recorder;
  CO_TRY_ASSIGN(const std::optional<services::FileFailure> failed, co_await recorder.start(std::move(wish)));
  if (failed) co_return http::fail(file_error(*failed, kSaveFilm, path).message, film_result(std::nullopt));
  // A person may have taken over meanwhile.
  if (call.services.workspace->takeover.is_exclusive()) CO_TRY(co_await recorder.hold(true));
  co_return film_response(recorder.state());
}

task<http::Response> record_display(Call call, DisplayRecordRequest body) {
  services::Recorder& recorder = call.services.workspace->recorder;
  Issues issues;
  const auto above_zero = [&issues](const char* name, double value) {
    if (!(value > 0)) issues.add(json::Value::array({"body", name}), "greater_than", "Input should be greater than 0");
  };
  above_zero("fps", static_cast<double>(body.fps));
  above_zero("max_duration", body.max_duration);
  for (const auto& [name, side] : {std::pair("width", body.width), std::pair("height", body.height)}) {
    if (side) above_zero(name, static_cast<double>(*side));
    if (side && *side > kMostSide)
      issues.add(json::Value::array({"body", name}), "less_than_equal", "Input should be less than or equal to 4096");
  }
  if (!issues.empty()) co_return validation_response(issues);
  if (body.action == "start") co_return co_await start_film(std::move(call), std::move(body));
  if (body.action == "status") co_return film_response(recorder.state());
  CO_TRY_ASSIGN(const std::optional<FilmState> state, co_await recorder.stop());
  if (!state) co_return http::fail("No film is being made", film_result(state));
  co_return film_response(state);
}

constexpr Route kDisplay[] = {
    {http::Method::post, "/v1/display/record", "record_v1_display_record_post", Scope::browser, kHands, Unknown::ignore,
     "Record the screen as a film", bind<record_display, DisplayRecordResult>()},
};

}  // namespace

Area display_routes() { return kDisplay; }

}  // namespace caisson::routes
