#include "agent/services/desktop/recorder.h"

#include <algorithm>

#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;
constexpr double kEndSeconds = 20;
constexpr double kMostFilmSeconds = 24 * 3600;

std::string number(double seconds) { return std::to_string(static_cast<std::int64_t>(std::max(seconds * 1000, 1.0))) + "ms"; }

// H.264 with 4:2:0 needs even sides.
std::string even(std::int64_t side) { return std::to_string(std::max<std::int64_t>(side - side % 2, 2)); }

std::vector<std::string> ffmpeg(const FilmWish& wish, std::int64_t width, std::int64_t height) {
  const std::string scale =
      "scale=" + even(wish.width.value_or(width)) + ":" + even(wish.height.value_or(height)) + ",format=yuv420p";
  return {"ffmpeg", "-hide_banner", "-loglevel", "error", "-f", "x11grab", "-draw_mouse", "1", "-framerate",
          std::to_string(wish.fps), "-video_size", std::to_string(width) + "x" + std::to_string(height), "-i",
          std::string(DesktopService::kDisplay), "-t", number(std::min(wish.most_seconds, kMostFilmSeconds)), "-vf", scale,
          "-c:v", "libx264", "-preset", "veryfast", "-crf", std::to_string(wish.crf), "-threads", "1", "-g",
          std::to_string(std::max<std::int64_t>(wish.fps * 2, 1)), "-movflags", "frag_keyframe+empty_moov+default_base_moof",
          // A fragment a second, and no picture waits for later ones: this much of the end is lost when it is cut off.
          "-frag_duration", "1000000", "-tune", "zerolatency", "-f", "mp4", "pipe:1"};
}

}  // namespace

struct Recorder::Film {
  explicit Film(const asio::any_io_executor& executor) : changed(executor) {}
  Relay::Pointer relay;
  std::string path;
  bridge::Clock::time_point since = bridge::Clock::now();
  std::optional<bridge::Clock::time_point> until;  // it has ended
  std::uint64_t bytes = 0;
  std::string problem;
  bool over = false;
  bridge::Notifier changed;
};

// A start that fails, or whose client leaves, leaves no film.
struct Recorder::Starting {
  explicit Starting(std::shared_ptr<Film> started) : film(std::move(started)) {}
  ~Starting() { film->over = film->over || !done; }
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
  const std::shared_ptr<Film> film;
  bool done = false;
};

Recorder::Recorder(bridge::LauncherClient& launcher, const Config&, DesktopService& desktop, FileService& files)
    : launcher_(launcher), desktop_(desktop), files_(files) {}

void Recorder::serve_workspace() { film_ = nullptr; }

// The file grows as the film does; what the file cannot take ends it.
task<void> Recorder::keep(std::shared_ptr<Film> film, Recorder* self) {
  while (true) {
    auto piece = co_await Relay::read(film->relay, kPieceBytes);
    if (!piece || piece->empty()) break;
    const std::size_t size = piece->size();
    if (film->bytes + size > kMostBytes) {
      film->problem = "the film has reached its largest size";
      break;
    }
    // The worker is asked for each time, for it may have been idle for too long. By now it may be that of another workspace.
    const auto worker = co_await self->files_.worker();
    if (self->film_ != film) break;
    json::Value head = {{"path", film->path}, {"append", true}};
    FileReply reply = std::unexpected(FileFailure{.kind = worker ? "" : worker.error().text()});
    if (worker) reply = co_await FileService::call_on(*worker, frames::FileOp::write, std::move(head), std::move(*piece));
    if (!reply) {
      film->problem = "the file cannot be written: " + (reply.error().text.empty() ? reply.error().kind : reply.error().text);
      break;
    }
    film->bytes += size;
  }
  film->relay->end();
  film->until = bridge::Clock::now();
  if (film->problem.empty() && film->bytes == 0)
    film->problem = "ffmpeg made no film: " + quote(film->relay->program()->tail(), 512);
  film->over = true;
  film->changed.notify_all();
  co_return Status{};
}

task<std::optional<FileFailure>> Recorder::start(FilmWish wish) {
  if (film_ && !film_->over) co_return fail(Code::already_exists, "a film is being made: stop it first");
  const auto film = film_ = std::make_shared<Film>(launcher_.executor());  // before the first wait: there is one at a time
  film->path = wish.path;
  Starting starting(film);
  auto begun = co_await begin(film, std::move(wish));
  starting.done = begun && !*begun;
  co_return begun;
}

task<std::optional<FileFailure>> Recorder::begin(std::shared_ptr<Film> film, FilmWish wish) {
  CO_TRY_ASSIGN(const frames::Frame screen, co_await desktop_.call(frames::DisplayOp::info, json::Value::object()));
  const auto side = [&screen](std::string_view name) {
    return json::get_int(screen.head, name).value_or(std::nullopt).value_or(0);
  };
  json::Value head = {{"path", wish.path}, {"append", false}};
  FileReply made = co_await files_.call(frames::FileOp::write, std::move(head));
  if (!made) co_return std::move(made).error();
  if (const std::string path = json::text_of(made->head, "path"); !path.empty()) film->path = path;
  CO_TRY_ASSIGN(film->relay, co_await desktop_.join("film", ffmpeg(wish, side("width"), side("height"))));
  if (film_ != film) co_return fail(Code::io, "the workspace has ended");
  film->since = bridge::Clock::now();
  spawn(launcher_.executor(), "film", keep(film, this));
  co_return std::nullopt;
}

task<std::optional<FilmState>> Recorder::stop() {
  const std::shared_ptr<Film> film = film_;
  if (!film || !film->relay) co_return std::nullopt;
  // As from its terminal: it writes what is left.
  if (!film->over) (void)co_await Relay::write(film->relay, "q");
  const auto deadline = bridge::deadline_after(kEndSeconds);
  while (!film->over)
    if (!co_await film->changed.wait_until(deadline)) break;
  if (!film->over) film->relay->end();
  co_return state();
}

std::optional<FilmState> Recorder::state() const {
  if (!film_ || !film_->relay) return std::nullopt;
  const std::chrono::duration<double> length = film_->until.value_or(bridge::Clock::now()) - film_->since;
  return FilmState{.recording = !film_->over,
                   .path = film_->path,
                   .seconds = length.count(),
                   .bytes = film_->bytes,
                   .problem = film_->problem};
}

task<void> Recorder::hold(bool held) {
  const std::shared_ptr<Film> film = film_;
  if (!film || !film->relay || film->over) co_return Status{};
  co_return co_await launcher_.exec_signal(film->relay->program()->exec(), held ? "SIGSTOP" : "SIGCONT");
}

}  // namespace caisson::services
