// Recorder: a film of the screen of one workspace, one at a time. ffmpeg takes it in the session of the X server and writes it to
// its stdout; it lands in a file by the rules of the `file` session. Fragmented, so that it plays up to where it was cut off.
// What ffmpeg writes waits in its pipe until the file has taken what came before.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/services/desktop/desktop_service.h"
#include "agent/services/files/file_service.h"

namespace caisson::services {

struct FilmWish {
  std::string path;
  std::int64_t fps = 5, crf = 28;             // crf: of H.264, 0 is the best and 51 the worst
  double most_seconds = 600;                  // then it ends by itself
  std::optional<std::int64_t> width, height;  // the screen's where they are absent
};

struct FilmState {
  bool recording = false;
  std::string path;
  double seconds = 0;
  std::uint64_t bytes = 0;
  std::string problem;  // why it ended before its time; "": it did not
};

class Recorder {
 public:
  static constexpr std::uint64_t kMostBytes = 1024ULL * 1024 * 1024;  // of a film; then it ends

  Recorder(bridge::LauncherClient& launcher, const Config& config, DesktopService& desktop, FileService& files);
  void serve_workspace();

  // Errors: already_exists (one is being made), and those of a program's start. A failure of the file is a FileFailure.
  [[nodiscard]] task<std::optional<FileFailure>> start(FilmWish wish);
  // Returns when the film is whole. nullopt: none was made.
  [[nodiscard]] task<std::optional<FilmState>> stop();
  [[nodiscard]] std::optional<FilmState> state() const;
  // ffmpeg stands still, and the film shows the last picture meanwhile.
  [[nodiscard]] task<void> hold(bool held);

 private:
  struct Film;
  struct Starting;
  [[nodiscard]] task<std::optional<FileFailure>> begin(std::shared_ptr<Film> film, FilmWish wish);
  // There as long as the agent, as its workspace is.
  static task<void> keep(std::shared_ptr<Film> film, Recorder* self);

  bridge::LauncherClient& launcher_;
  DesktopService& desktop_;
  FileService& files_;
  std::shared_ptr<Film> film_;  // the last one
};

}  // namespace caisson::services
