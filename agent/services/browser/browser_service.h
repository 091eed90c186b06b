// BrowserService: Chromium of one workspace, in a session of the domain `browser`. caisson-cdp holds it by its debugging pipe and
// shares it among clients, each of which has a relay of its own; it starts Chromium when it is told to, and here is decided when.
// It begins at the first request, with the screen that its window is on, and again when that screen was made anew.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/services/browser/cdp_control.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/desktop/desktop_service.h"
#include "agent/services/program/relay.h"
#include "agent/services/program/supervisor.h"

namespace caisson::services {

// What a restart changes; what is absent is not in force afterwards.
struct BrowserWishes {
  std::optional<std::vector<std::string>> url_blocklist, url_allowlist;
  std::optional<bool> allow_file_selection_dialogs;
  std::optional<std::string> locale;
};

class BrowserService {
 public:
  static constexpr const char* kSocket = "/dev/shm/cdp";              // of caisson-cdp, in the session
  static constexpr std::chrono::milliseconds kAnswersWithin{40'000};  // caisson-cdp gives up on Chromium after 30 s

  BrowserService(bridge::LauncherClient& launcher, const Config& config, DesktopService& desktop);
  ~BrowserService();
  BrowserService(const BrowserService&) = delete;
  BrowserService& operator=(const BrowserService&) = delete;

  void serve_workspace(std::string name);

  // The session of a Chromium that answers. Errors: unavailable (it ended too often, and why; restart() tries again), and those
  // of a start.
  [[nodiscard]] task<std::shared_ptr<bridge::SessionHandle>> session();
  // Chromium ends and starts with the same profile. Errors: invalid_argument (a wish that caisson-cdp refuses), and those of
  // session().
  [[nodiscard]] task<void> restart(BrowserWishes wishes);
  // A client of the browser (target ""), or of a page. What passes is as agent/cdp/README.md has it: each message is JSON and
  // NUL. Errors: not_found (caisson-cdp refuses it, and says why), and those of session().
  struct Client {
    Relay::Pointer relay;
    std::string browser;  // 32 hex digits, new at each start of Chromium
    std::string rest;     // what came behind the greeting
  };
  [[nodiscard]] task<Client> connect(std::string target);
  // JSON: the protocol's domains, as `/json/protocol` of Chromium's port gives them; of the version that the page driver was
  // installed with. Errors: io, limit, timeout, and those of session().
  [[nodiscard]] task<std::string> protocol();
  // One command as a client of its own, to the browser or to a page. Errors: invalid_argument (Chromium's, with its message),
  // timeout, and those of connect().
  [[nodiscard]] task<json::Value> ask(std::string method, json::Value params, std::string target = "",
                                      std::chrono::milliseconds within = kAnswersWithin);
  // The same as this client, which then leaves.
  [[nodiscard]] static task<json::Value> ask_as(Client asking, std::string method, json::Value params,
                                                std::chrono::milliseconds within = kAnswersWithin);

 private:
  // Shared with coroutines and callbacks, which may outlive the service for a moment.
  struct State {
    explicit State(const asio::any_io_executor& e) : executor(e), changed(e) {}
    const asio::any_io_executor executor;
    CdpControl::Pointer control;  // of the caisson-cdp that runs
    bool ready = false;           // Chromium answers
    std::string given_up;
    std::string refused;                         // why caisson-cdp does not do what it was told last
    std::deque<bridge::Clock::time_point> ends;  // of Chromium's that nobody asked for, in the last minute
    json::Value wishes = json::Value::object();
    bridge::Notifier changed;
  };
  static void hear(const std::shared_ptr<State>& state, const json::Value& event);
  static task<void> start_again(std::shared_ptr<State> state, CdpControl::Pointer control, std::chrono::milliseconds pause);
  static task<void> await_ready(std::shared_ptr<State> state, Program::Pointer program, bridge::Clock::time_point deadline);
  [[nodiscard]] task<Program::Pointer> program();
  [[nodiscard]] static task<std::string> read_all(Relay::Pointer relay);
  [[nodiscard]] static task<std::string> next(std::shared_ptr<Client> client);
  [[nodiscard]] static task<void> greet(std::shared_ptr<Client> client);
  [[nodiscard]] static task<json::Value> converse(std::shared_ptr<Client> client, std::string command);

  bridge::LauncherClient& launcher_;
  const Config config_;
  DesktopService& desktop_;
  const std::shared_ptr<State> state_;
  Supervisor supervisor_;
  Program::Pointer screen_;  // the X server that Chromium's window is on
};

}  // namespace caisson::services
