// DesktopService: the screen of one workspace. Three programs share one session of the domain `desktop`: the X server (Xvnc),
// whose end is the end of the session; the window manager (openbox); and caisson-display, which takes pictures and moves the
// mouse. They start at the first request. The last two are started again when they end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/frames/display_protocol.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/program/relay.h"
#include "agent/services/program/supervisor.h"
#include "agent/services/program/worker.h"

namespace caisson::services {

class DesktopService {
 public:
  static constexpr std::string_view kDisplay = ":99";
  static constexpr std::size_t kMostViewers = 32;

  DesktopService(bridge::LauncherClient& launcher, const Config& config);
  ~DesktopService();
  DesktopService(const DesktopService&) = delete;
  DesktopService& operator=(const DesktopService&) = delete;

  // From now on the screen of this workspace. Its predecessor's programs have ended.
  void serve_workspace(std::string name);

  // Starts the X server unless it runs, and with it the window manager: a window that was there before it would not have the
  // focus. Sessions of the domain `browser` reach the X server's socket.
  [[nodiscard]] task<Program::Pointer> screen();
  // Adds a viewer of the screen by VNC (RFC 6143). `note` describes the viewer in the audit log. Errors: limit (kMostViewers
  // watch), and those of a start.
  [[nodiscard]] task<Relay::Pointer> view(std::string note);
  // What failed several times in a row is started by the next request, without a pause.
  void try_again();
  // A program in the session of the X server, with its display, and with pipes as stdin and stdout.
  [[nodiscard]] task<Relay::Pointer> join(std::string name, std::vector<std::string> argv, bool tool = false);
  // One operation of caisson-display. `seconds` are the operation's own, such as those of a WAIT. Errors: invalid_argument (what
  // the request says is wrong; the text says what), the supervisor's, and what the worker says.
  [[nodiscard]] task<frames::Frame> call(frames::DisplayOp op, json::Value head, std::string body = "", double seconds = 0);

 private:
  [[nodiscard]] task<Worker::Pointer> worker();
  // Starts the window manager in the session of this X server, again when it ends.
  static task<void> manage_windows(std::shared_ptr<Supervisor> windows, Program::Pointer server);

  bridge::LauncherClient& launcher_;
  const std::shared_ptr<OutputBudget> budget_;
  Supervisor server_;
  const std::shared_ptr<Supervisor> windows_;  // shared with what starts it again
  Supervisor display_;
  Program::Pointer managed_;  // the X server whose windows are managed
  Worker::Pointer worker_;    // of the caisson-display that runs
  std::vector<std::weak_ptr<Relay>> viewers_;
};

}  // namespace caisson::services
