#include "agent/services/observe/observer.h"

#include <algorithm>
#include <cmath>

#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

constexpr std::string_view kGuardrail = "guardrail";
constexpr double kShortest = 0.25, kLongest = 3600, kCaptureInterval = 1, kGuardInterval = 10;
constexpr std::int64_t kLongestSeconds = 7LL * 24 * 3600;
constexpr std::size_t kReportShare = 128;  // of the room for output
constexpr std::chrono::milliseconds kFresh{200};
constexpr std::chrono::seconds kBetweenOwnReports{60};
constexpr int kNearPercent = 90;

bool is_near(std::int64_t used, std::int64_t limit) { return limit > 0 && used >= limit / 100 * kNearPercent; }

}  // namespace

Observer::Observer(bridge::LauncherClient& launcher, const Config& config)
    : launcher_(launcher),
      user_(config.user),
      most_bytes_(config.total_cap_bytes / kReportShare),
      budget_(budget_of(config)),
      share_(budget_->share()),
      meter_(std::make_shared<Meter>(launcher, config.workspace, user_)),
      changed_(launcher.executor()) {}

Observer::~Observer() {
  if (running()) end(*current_);
}

void Observer::serve_workspace(const std::string& name) {
  if (running()) end(*current_);
  meter_ = std::make_shared<Meter>(launcher_, name, user_);
  current_.reset();
  live_.reset();
  live_until_ = next_own_report_ = {};
  events_.clear();
  near_.clear();
  reports_.clear();
}

void Observer::note(std::string type, std::string message, json::Value data) {
  ObservedEvent event{sys::realtime_ns(), std::move(type), std::move(message), std::move(data)};
  const auto add = [&event](std::deque<ObservedEvent>& to) {
    if (to.size() == kMostEvents) to.pop_front();
    to.push_back(event);
  };
  add(events_);
  if (running()) add(current_->events);
}

Result<ObservationPtr> Observer::start(const StartObservation& wanted) {
  if (current_ && !wanted.key.empty() && current_->key == wanted.key) return current_;
  if (running())
    return fail(Code::already_exists,
                "observation " + current_->id + " is running; stop it first, or repeat its idempotency_key");
  auto made = std::make_shared<Observation>();
  made->id = "obs-" + sys::random_hex(8);
  made->mode = wanted.mode;
  made->key = wanted.key;
  made->started_ns = sys::realtime_ns();
  if (wanted.duration_seconds)
    made->ends_ns = made->started_ns + std::clamp<std::int64_t>(*wanted.duration_seconds, 1, kLongestSeconds) * 1'000'000'000;
  const bool guards = wanted.mode == kGuardrail;
  made->interval_seconds =
      std::clamp(wanted.interval_seconds.value_or(guards ? kGuardInterval : kCaptureInterval), kShortest, kLongest);
  made->at = {.processes = wanted.processes.value_or(!guards), .disk = wanted.disk};
  current_ = made;
  near_.clear();
  note("observation_start", made->mode + " began", {{"session_id", made->id}, {"mode", made->mode}});
  spawn(launcher_.executor(), "observation", loop(this, made));
  return current_;
}

std::string Observer::unknown(const std::string& what) {
  return what + " not found" + (Keep::successor() ? "; observations of the previous agent ended with it" : "");
}

Result<Observer::Stopped> Observer::stop(const std::string& id) {
  if (!current_ || (!id.empty() && id != current_->id)) return fail(Code::not_found, unknown("Observation session"));
  if (!running()) return Stopped{current_, false};
  end(*current_);
  return Stopped{current_, true};
}

void Observer::end(Observation& observation) {
  note("observation_stop", observation.mode + " ended", {{"session_id", observation.id}, {"mode", observation.mode}});
  observation.ended_ns = sys::realtime_ns();
  changed_.notify_all();
}

task<void> Observer::loop(Observer* self, std::shared_ptr<Observation> mine) {
  const auto interval = std::chrono::microseconds(static_cast<std::int64_t>(mine->interval_seconds * 1e6));
  bridge::Clock::time_point next = bridge::Clock::now();
  while (!mine->ended_ns) {
    auto sample = co_await Meter::take(self->meter_, mine->at);
    if (mine->ended_ns) break;  // from here on `self` may observe something else
    if (!sample) {
      self->note("sample_failed", sample.error().text(), json::Value::object());
    } else {
      auto kept = std::make_shared<const Sample>(std::move(*sample));
      if (mine->mode == kGuardrail) self->guard(*kept);
      self->keep(*mine, std::move(kept));
    }
    // After a sample that took longer than the interval, the missed ones are skipped.
    next = std::max(next + interval, bridge::Clock::now());
    bridge::Clock::time_point until = next;
    if (mine->ends_ns)
      until = std::min(until, bridge::Clock::now() + std::chrono::nanoseconds(*mine->ends_ns - sys::realtime_ns()));
    while (!mine->ended_ns && bridge::Clock::now() < until) (void)co_await self->changed_.wait_until(until);
    if (!mine->ended_ns && mine->ends_ns && sys::realtime_ns() >= *mine->ends_ns) self->end(*mine);
  }
  co_return Status{};
}

void Observer::keep(Observation& observation, std::shared_ptr<const Sample> sample) {
  observation.last_sample_ns = sample->captured_ns;
  observation.bytes += sample->bytes();
  observation.samples.push_back(std::move(sample));
  while (observation.samples.size() > 1 && (observation.bytes > most_bytes_ || observation.samples.size() > kMostSamples ||
                                            share_.resize(observation.bytes) != http::Room::granted)) {
    observation.bytes -= observation.samples.front()->bytes();
    observation.samples.pop_front();
    ++observation.dropped;
  }
}

void Observer::guard(const Sample& sample) {
  std::set<std::string> now;
  const auto check = [&](const std::string& what, std::int64_t used, std::int64_t limit, json::Value data) {
    if (!is_near(used, limit)) return;
    now.insert(what);
    if (near_.contains(what)) return;
    data["used"] = used;
    data["limit"] = limit;
    note("near_limit", what + ": " + std::to_string(used) + " of " + std::to_string(limit), std::move(data));
  };
  for (const SessionUse& s : sample.sessions) {
    check("memory of session " + s.session_id, s.memory_bytes, s.memory_limit, {{"session_id", s.session_id}});
    check("processes of session " + s.session_id, s.processes, s.process_limit, {{"session_id", s.session_id}});
  }
  check("memory of the workspace", sample.total.mem_current_bytes, sample.total.mem_max_bytes.value_or(0), json::Value::object());
  for (const DiskUse& d : sample.disk) {
    check("disk " + d.path, d.used_bytes, d.used_bytes + d.free_bytes, {{"path", d.path}});
    check("files of " + d.path, d.inode_used.value_or(0), d.inode_total.value_or(0), {{"path", d.path}});
  }
  near_ = std::move(now);
}

void Observer::session_ended(const bridge::SessionHandle& session) {
  const std::string& why = session.end_reason;
  note("session_end", "session " + session.id + " was ended: " + why, {{"session_id", session.id}, {"reason", why}});
  const bool by_limit = why == "memory" || why == "oom" || why == "processes";
  if (!by_limit || !running() || current_->mode != kGuardrail || bridge::Clock::now() < next_own_report_) return;
  next_own_report_ = bridge::Clock::now() + kBetweenOwnReports;
  freeze(std::make_shared<const Observation>(*current_), why, "");
}

task<std::shared_ptr<const Sample>> Observer::live() {
  if (live_ && bridge::Clock::now() < live_until_) co_return live_;
  const std::shared_ptr<Meter> meter = meter_;
  CO_TRY_ASSIGN(Sample sample, co_await Meter::take(meter, Looked()));
  auto taken = std::make_shared<const Sample>(std::move(sample));
  if (meter == meter_) {
    live_ = taken;
    live_until_ = bridge::Clock::now() + kFresh;
  }
  co_return taken;
}

ReportPtr Observer::freeze(ObservationPtr of, std::string reason, std::string key) {
  auto report = std::make_shared<ObservedReport>();
  report->id = "report-" + sys::random_hex(8);
  report->reason = std::move(reason);
  report->key = std::move(key);
  report->created_ns = sys::realtime_ns();
  report->observation = std::move(of);
  report->share = budget_->share();
  if (reports_.size() == kMostReports) reports_.pop_front();
  while (report->share.resize(report->observation->bytes) != http::Room::granted && !reports_.empty()) reports_.pop_front();
  reports_.push_back(report);
  note("report", "report " + report->id + " was made: " + report->reason,
       {{"report_id", report->id}, {"reason", report->reason}});
  return report;
}

task<ReportPtr> Observer::report(std::string id, std::string reason, std::string key) {
  if (!key.empty())
    for (const ReportPtr& known : reports_)
      if (known->key == key) co_return known;
  if (!id.empty() && (!current_ || current_->id != id)) co_return fail(Code::not_found, unknown("Observation session"));
  if (current_) co_return freeze(std::make_shared<const Observation>(*current_), std::move(reason), std::move(key));
  CO_TRY_ASSIGN(const auto sample, co_await live());
  Observation moment;
  moment.mode = "off";
  moment.started_ns = moment.last_sample_ns = sample->captured_ns;
  moment.samples.push_back(sample);
  moment.events = events_;
  co_return freeze(std::make_shared<const Observation>(std::move(moment)), std::move(reason), std::move(key));
}

ReportPtr Observer::find_report(const std::string& id) const {
  const auto it = std::ranges::find(reports_, id, [](const ReportPtr& r) { return r->id; });
  return it == reports_.end() ? nullptr : *it;
}

}  // namespace caisson::services
