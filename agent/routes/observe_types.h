// Requests and answers of /v1/sandbox/observe, by the contract's names. `session_id` of a process is beyond the contract: a
// process number is meaningful only together with its session.
#pragma once

#include "agent/routes/schema.h"
#include "agent/services/observe/observer.h"

namespace caisson::routes {

inline constexpr std::string_view kStartModes[] = {"guardrail", "capture"};
inline constexpr std::string_view kModes[] = {"off", "guardrail", "capture"};

struct ObserveStart {
  std::string mode = "capture";
  std::optional<std::string> idempotency_key;
  std::optional<std::int64_t> duration_seconds;
  std::optional<double> interval_seconds;
  std::optional<bool> include_processes;
  bool include_disk = true;
};
struct ObserveStop {
  std::optional<std::string> session_id;
};
struct ObserveExport {
  std::optional<std::string> idempotency_key, session_id;
  std::string reason = "manual";
};

struct ObservationStatus {
  std::string mode = "off";
  bool running = false;
  std::optional<std::string> session_id, started_at, ends_at;
  std::optional<double> interval_seconds;
  std::optional<std::string> last_sample_at, runtime_dir;
  std::int64_t report_count = 0;
};
struct ObservationStartResult {
  std::string session_id, mode, started_at;
  std::optional<std::string> ends_at;
  double interval_seconds = 1;
  std::string runtime_dir;
};
struct ObservationStopResult {
  std::string session_id;
  bool stopped = false, report_ready = false;
};
struct ObservationReportInfo {
  std::string report_id;
  std::optional<std::string> session_id;
  std::string reason = "manual", created_at, path;
  std::int64_t size_bytes = 0;
};
struct ObservationExportResult;  // the contract's second name for ObservationReportInfo
struct ObservationEvent {
  std::string ts, type, message;
  json::Value data = json::Value::object();
};
struct ObservationLiveSnapshot {
  std::string captured_at, mode;
  services::TotalUse cgroup;
  std::vector<services::DiskUse> disk;
  std::vector<services::ProcessUse> top_processes;
  std::vector<ObservationEvent> recent_events;
};

template <>
struct Schema<ObserveStart> {
  static constexpr std::string_view name = "ObserveStartRequest";
  static constexpr auto fields = std::tuple{
      field("mode", &ObserveStart::mode, "capture, or guardrail: seldom, and a report when a limit ends a session")
          .one_of(kStartModes)
          .defaulted(),
      field("idempotency_key", &ObserveStart::idempotency_key, "The same key gives the same observation").max_length(128),
      field("duration_seconds", &ObserveStart::duration_seconds, "Seconds after which it ends by itself; at most 7 days")
          .min(0)
          .unlisted(),
      field("interval_seconds", &ObserveStart::interval_seconds,
            "Seconds between samples, 0.25 to 3600; default 1 for capture, 10 for guardrail")
          .min(0)
          .unlisted(),
      field("include_processes", &ObserveStart::include_processes, "Rows of processes; default true for capture"),
      field("include_disk", &ObserveStart::include_disk, "The home's file system").defaulted()};
};
template <>
struct Schema<ObserveStop> {
  static constexpr std::string_view name = "ObserveStopRequest";
  static constexpr auto fields =
      std::tuple{field("session_id", &ObserveStop::session_id, "The observation; absent: the running one")};
};
template <>
struct Schema<ObserveExport> {
  static constexpr std::string_view name = "ObserveExportRequest";
  static constexpr auto fields =
      std::tuple{field("idempotency_key", &ObserveExport::idempotency_key, "The same key gives the same report").max_length(128),
                 field("session_id", &ObserveExport::session_id, "The observation; absent: the latest"),
                 field("reason", &ObserveExport::reason, "Reason for the report; at most 256 characters")
                     .max_length(256)
                     .unlisted()
                     .defaulted()};
};
template <>
struct Schema<ObservationStatus> {
  static constexpr std::string_view name = "ObservationStatus";
  static constexpr auto fields =
      std::tuple{field("mode", &ObservationStatus::mode, "off when none runs").one_of(kModes),
                 field("running", &ObservationStatus::running, "Whether an observation runs"),
                 field("session_id", &ObservationStatus::session_id, "The latest observation"),
                 field("started_at", &ObservationStatus::started_at, "When it began").format("date-time"),
                 field("ends_at", &ObservationStatus::ends_at, "When it ends by itself").format("date-time"),
                 field("interval_seconds", &ObservationStatus::interval_seconds, "Seconds between samples"),
                 field("last_sample_at", &ObservationStatus::last_sample_at, "When the last one was taken").format("date-time"),
                 field("runtime_dir", &ObservationStatus::runtime_dir, "For compatibility; the directory does not exist"),
                 field("report_count", &ObservationStatus::report_count, "Available reports").defaulted()};
};
template <>
struct Schema<ObservationStartResult> {
  static constexpr std::string_view name = "ObservationStartResult";
  static constexpr auto fields =
      std::tuple{field("session_id", &ObservationStartResult::session_id, "The observation"),
                 field("mode", &ObservationStartResult::mode, "capture or guardrail").one_of(kModes),
                 field("started_at", &ObservationStartResult::started_at, "When it began").format("date-time"),
                 field("ends_at", &ObservationStartResult::ends_at, "When it ends by itself").format("date-time"),
                 field("interval_seconds", &ObservationStartResult::interval_seconds, "Seconds between samples"),
                 field("runtime_dir", &ObservationStartResult::runtime_dir, "For compatibility; the directory does not exist")};
};
template <>
struct Schema<ObservationStopResult> {
  static constexpr std::string_view name = "ObservationStopResult";
  static constexpr auto fields =
      std::tuple{field("session_id", &ObservationStopResult::session_id, "The observation"),
                 field("stopped", &ObservationStopResult::stopped, "Whether it ran until now"),
                 field("report_ready", &ObservationStopResult::report_ready, "Whether a report can be made of it")};
};
template <>
struct Schema<ObservationReportInfo> {
  static constexpr std::string_view name = "ObservationReportInfo";
  static constexpr auto fields =
      std::tuple{field("report_id", &ObservationReportInfo::report_id, "The report"),
                 field("session_id", &ObservationReportInfo::session_id,
                       "The observation; null: none ran, the report has one sample of the moment"),
                 field("reason", &ObservationReportInfo::reason, "Reason for the report").defaulted(),
                 field("created_at", &ObservationReportInfo::created_at, "When it was made").format("date-time"),
                 field("path", &ObservationReportInfo::path, "Its address in the API"),
                 field("size_bytes", &ObservationReportInfo::size_bytes, "Packed")};
};
template <>
struct Codec<ObservationExportResult> {
  static json::Value describe(const Bounds& b, Components& c) {
    (void)Codec<ObservationReportInfo>::describe(b, c);
    json::Value same = c.at("ObservationReportInfo");
    same["title"] = type_name();
    c[type_name()] = std::move(same);
    return {{"$ref", "#/components/schemas/" + type_name()}};
  }
  static std::string type_name() { return "ObservationExportResult"; }
};
template <>
struct Schema<ObservationEvent> {
  static constexpr std::string_view name = "ObservationEvent";
  static constexpr auto fields =
      std::tuple{field("ts", &ObservationEvent::ts, "When").format("date-time"),
                 field("type", &ObservationEvent::type, "session_end, near_limit, observation_start, observation_stop, report"),
                 field("message", &ObservationEvent::message, "In words").defaulted(),
                 field("data", &ObservationEvent::data, "The same, as values").object().defaulted()};
};
template <>
struct Schema<services::TotalUse> {
  using T = services::TotalUse;
  static constexpr std::string_view name = "ObservationCgroupSnapshot";
  static constexpr auto fields =
      std::tuple{field("cpu_usage_pct", &T::cpu_usage_pct, "Since the previous sample; 100 is one core"),
                 field("cpu_usage_usec", &T::cpu_usage_usec, "Processor time of the workspace's sessions").defaulted(),
                 field("mem_current_bytes", &T::mem_current_bytes, "Memory of the workspace's sessions").defaulted(),
                 field("mem_max_bytes", &T::mem_max_bytes, "Their common limit; null: each has a limit of its own"),
                 field("mem_usage_pct", &T::mem_usage_pct, "Used of it"),
                 field("oom_kill", &T::oom_kill, "Out-of-memory kills in living sessions; null without cgroup v2"),
                 field("oom", &T::unmeasured, "Not measured"),
                 field("cpu_nr_periods", &T::unmeasured, "Not measured"),
                 field("cpu_nr_throttled", &T::unmeasured, "Not measured"),
                 field("cpu_throttled_usec", &T::unmeasured, "Not measured"),
                 field("memory_anon_bytes", &T::unmeasured, "Not measured"),
                 field("memory_file_bytes", &T::unmeasured, "Not measured"),
                 field("memory_shmem_bytes", &T::unmeasured, "Not measured"),
                 field("memory_slab_bytes", &T::unmeasured, "Not measured")};
};
template <>
struct Schema<services::DiskUse> {
  using T = services::DiskUse;
  static constexpr std::string_view name = "ObservationDiskSnapshot";
  static constexpr auto fields = std::tuple{field("path", &T::path, "Directory"),
                                            field("used_bytes", &T::used_bytes, "Used"),
                                            field("total_bytes", &T::total_bytes, "Size of its file system"),
                                            field("free_bytes", &T::free_bytes, "Free for users"),
                                            field("usage_pct", &T::usage_pct, "Used of it"),
                                            field("inode_used", &T::inode_used, "Files"),
                                            field("inode_total", &T::inode_total, "Number of files that it can hold"),
                                            field("inode_usage_pct", &T::inode_usage_pct, "Files of it")};
};
template <>
struct Schema<services::ProcessUse> {
  using T = services::ProcessUse;
  static constexpr std::string_view name = "ObservationProcessSnapshot";
  static constexpr auto fields = std::tuple{field("pid", &T::pid, "Its number in its session"),
                                            field("user", &T::user, "Its user"),
                                            field("comm", &T::comm, "The name it gives itself"),
                                            field("rss_bytes", &T::rss_bytes, "Anonymous and shared memory"),
                                            field("rss_mib", &T::rss_mib, "The same in MiB"),
                                            field("cpu_pct", &T::cpu_pct, "Since the previous sample"),
                                            field("threads", &T::threads, "Threads"),
                                            field("state", &T::state, "State as in /proc: R, S, D, T, Z"),
                                            field("uptime_sec", &T::uptime_sec, "Seconds since its start"),
                                            field("fds", &T::unmeasured, "Not measured"),
                                            field("ppid", &T::unmeasured, "Not measured"),
                                            field("session_id", &T::session_id, "The launcher's id of its session")};
};
template <>
struct Schema<services::SessionUse> {
  using T = services::SessionUse;
  static constexpr std::string_view name = "ObservationSessionUse";
  static constexpr auto fields =
      std::tuple{field("session_id", &T::session_id, "The launcher's id"),   field("domain", &T::domain, "Its policy"),
                 field("processes", &T::processes, "Processes and threads"), field("memory_bytes", &T::memory_bytes, "Memory"),
                 field("cpu_usec", &T::cpu_usec, "Processor time"),          field("process_limit", &T::process_limit, "At most"),
                 field("memory_limit", &T::memory_limit, "At most")};
};
template <>
struct Schema<ObservationLiveSnapshot> {
  using T = ObservationLiveSnapshot;
  static constexpr std::string_view name = "ObservationLiveSnapshot";
  static constexpr auto fields = std::tuple{field("captured_at", &T::captured_at, "When").format("date-time"),
                                            field("mode", &T::mode, "").one_of(kModes),
                                            field("cgroup", &T::cgroup, ""),
                                            field("disk", &T::disk, "").defaulted(),
                                            field("top_processes", &T::top_processes, "The largest first").defaulted(),
                                            field("recent_events", &T::recent_events, "The newest last").defaulted()};
};

}  // namespace caisson::routes
