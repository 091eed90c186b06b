// Observes one workspace: samples the use of its sessions at an interval into a ring of bounded size, and makes reports of the
// samples. Decisions where the contract is silent:
// - capture samples every second with process rows; guardrail samples every ten seconds without, notes a session that comes near
//   one of its limits, and makes a report by itself when a limit ends one. A request can change both.
// - one runs at a time. The same idempotency key gives the same observation, also when it is over.
// - there is no directory: samples and reports are in the agent's memory, and `path` is their address in the API.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/observe/usage.h"

namespace caisson::services {

struct ObservedEvent {
  std::int64_t time_ns = 0;
  std::string type, message;
  json::Value data = json::Value::object();
};

struct Observation {
  std::string id, mode, key;
  std::int64_t started_ns = 0, last_sample_ns = 0;
  std::optional<std::int64_t> ends_ns, ended_ns;
  double interval_seconds = 1;
  Looked at;
  std::deque<std::shared_ptr<const Sample>> samples;
  std::deque<ObservedEvent> events;
  std::size_t bytes = 0;
  std::uint64_t dropped = 0;  // samples dropped to make room
};
using ObservationPtr = std::shared_ptr<const Observation>;

// Frozen at the time of the request; the handler makes and packs its text.
struct ObservedReport {
  std::string id, reason, key;
  std::int64_t created_ns = 0;
  ObservationPtr observation;  // id "": none ran, so it has one sample of the moment
  std::string packed;          // gzip; empty until it is made
  http::Budget::Share share;   // of the observation
};
using ReportPtr = std::shared_ptr<ObservedReport>;

struct StartObservation {
  std::string mode = "capture";
  std::string key;
  std::optional<std::int64_t> duration_seconds;
  std::optional<double> interval_seconds;
  std::optional<bool> processes;
  bool disk = true;
};

class Observer {
 public:
  static constexpr std::size_t kMostReports = 8, kMostSamples = 3600, kMostEvents = 100;

  Observer(bridge::LauncherClient& launcher, const Config& config);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  void serve_workspace(const std::string& name);

  // already_exists: another one runs.
  [[nodiscard]] Result<ObservationPtr> start(const StartObservation& wanted);
  struct Stopped {
    ObservationPtr observation;
    bool now = false;  // it ran until now
  };
  // not_found: there is no such observation, or (for "") none ever ran.
  [[nodiscard]] Result<Stopped> stop(const std::string& id);
  // The message about an unknown observation.
  [[nodiscard]] static std::string unknown(const std::string& what);
  // The running observation, or the last one; nullptr: none ever ran.
  [[nodiscard]] ObservationPtr latest() const { return current_; }
  [[nodiscard]] bool running() const { return current_ && !current_->ended_ns; }
  [[nodiscard]] double interval_seconds() const { return running() ? current_->interval_seconds : 1; }
  // A sample of now, or of a moment ago if another request has just asked.
  [[nodiscard]] task<std::shared_ptr<const Sample>> live();
  [[nodiscard]] const std::deque<ObservedEvent>& recent_events() const { return events_; }

  // Makes a report of the observation with that id, or of the latest (""). The oldest report makes room. not_found.
  [[nodiscard]] task<ReportPtr> report(std::string id, std::string reason, std::string key);
  [[nodiscard]] const std::deque<ReportPtr>& reports() const { return reports_; }
  [[nodiscard]] ReportPtr find_report(const std::string& id) const;
  void remove_report(const ReportPtr& report) { std::erase(reports_, report); }

  // The launcher has ended a session of this workspace.
  void session_ended(const bridge::SessionHandle& session);

 private:
  static task<void> loop(Observer* self, std::shared_ptr<Observation> mine);
  void note(std::string type, std::string message, json::Value data);
  void keep(Observation& observation, std::shared_ptr<const Sample> sample);
  void guard(const Sample& sample);
  void end(Observation& observation);
  ReportPtr freeze(ObservationPtr of, std::string reason, std::string key);

  bridge::LauncherClient& launcher_;
  const std::string user_;
  const std::size_t most_bytes_;
  const std::shared_ptr<OutputBudget> budget_;
  http::Budget::Share share_;  // of the current observation
  std::shared_ptr<Meter> meter_;
  std::shared_ptr<Observation> current_;
  std::shared_ptr<const Sample> live_;
  bridge::Clock::time_point live_until_, next_own_report_;
  std::deque<ObservedEvent> events_;
  std::set<std::string> near_;  // sessions near a limit, so that each is noted once
  std::deque<ReportPtr> reports_;
  bridge::Notifier changed_;
};

}  // namespace caisson::services
