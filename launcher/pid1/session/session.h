// One session: from the start of its child until nothing of it is left. A state machine driven by the event loop; it never
// blocks. Sessions owns it and is told of everything by Events.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/common/audit/log.h"
#include "launcher/common/base/ends.h"
#include "launcher/common/base/loop.h"
#include "launcher/common/confine/cgroup.h"
#include "launcher/common/confine/init_link.h"
#include "launcher/common/confine/verify.h"
#include "launcher/pid1/execute/session_builder.h"

namespace caisson::session {

enum class State { building, idle, running, ending, ended };  // idle: built and verified, not yet given to anybody

struct Exec {
  confine::ExecRequest request;
  std::string label;  // "e-7"
  bool pty = false, started = false;
  bool keep = false;     // outlives who asked for it
  std::vector<Fd> ends;  // for the client, with the reply: our ends of the pipes
  Loop::TimerId timer = 0, start_timer = 0;
  std::int64_t due_us = 0;  // when `timer` fires; while it is held: how long it still has
  CommandEnd reason;        // why it was ended by us, or empty
  std::int64_t begin_us = 0;
};

struct Totals {
  std::uint64_t execs = 0;
  std::int64_t cpu_us = 0;
  std::optional<confine::CgroupStats> cgroup;  // read when the last process was gone
  bool cgroup_left = false;                    // the kernel would not let it be removed
};

class Session;

// What a session tells its owner; it comes from the loop.
class Events {
 public:
  // The descriptor to which its filter tells of refused calls; what can be refused. An error ends the session.
  [[nodiscard]] virtual Status on_listener(Session& session, const Fd& fd, const std::string& refusals) = 0;
  virtual void on_built(Session& session, Status status) = 0;  // built and verified, or not (then it ends by itself)
  // The command's execve succeeded (with the client's descriptors) or did not.
  virtual void on_started(Session& session, Exec& exec, int pid) = 0;
  virtual void on_failed(Session& session, Exec& exec, const Error& error, const std::string& step) = 0;
  virtual void on_exited(Session& session, Exec& exec, const init::Reply& reply) = 0;
  virtual void on_ended(Session& session) = 0;  // nothing of it is left; it may be deleted

 protected:
  ~Events() = default;
};

class Session {
 public:
  // Starts the child. Events come later, from the loop. cgroup may be absent.
  [[nodiscard]] static Result<std::unique_ptr<Session>> start(std::string id, std::shared_ptr<const confine::Template> prepared,
                                                              const confine::Builder& builder,
                                                              const confine::Workspace& workspace, uid_t uid,
                                                              std::optional<confine::Cgroup> cgroup, Loop& loop, Events& events);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const confine::Plan& plan() const { return *prepared_->plan; }
  [[nodiscard]] const policy::Policy& policy() const { return *prepared_->plan->policy; }
  [[nodiscard]] nlohmann::json created() const;  // what its client is told when it is there
  // canary: what the probes gave in a session of the same template; with it, each mechanism says what it was verified by.
  [[nodiscard]] nlohmann::json report(const confine::ProbeResults* canary = nullptr) const;
  [[nodiscard]] const std::map<std::uint32_t, Exec>& execs() const { return execs_; }
  [[nodiscard]] const Totals& totals() const { return totals_; }
  [[nodiscard]] SessionEnd end_reason() const { return end_reason_; }
  [[nodiscard]] const nlohmann::json& end_hit() const { return end_hit_; }     // {limit?, allowed, figure}, or null
  [[nodiscard]] const std::string& end_detail() const { return end_detail_; }  // what was read back, or could not be
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::optional<confine::Cgroup>& cgroup() const { return cgroup_; }
  [[nodiscard]] uid_t uid() const { return uid_; }
  [[nodiscard]] std::string next_label() const { return "e-" + std::to_string(next_exec_); }  // of the next command

  [[nodiscard]] Result<std::string> start_record() const;  // {"report": report()}, prepared for its log
  void run() { state_ = State::running; }
  void lose_denials(std::string why) { denials_lost_ = std::move(why); }  // said in every report from now on
  // Reads the facts back from the kernel once more: what is attested is so now. What no longer holds ends the session.
  [[nodiscard]] Status verify_again();
  // What the policy hides is still covered; else it ends.
  [[nodiscard]] bool check_covers();
  void poll_child() { read_init(); }  // hears of its first process, before children are reaped
  // Sends the command to init, which makes its process and waits for go() before the execve. hard_timeout_us 0: none. Errors:
  // limit (limits.execs, or too much waits for init), invalid_argument; the request is the caller's still, then.
  [[nodiscard]] Result<Exec*> exec(confine::ExecRequest&& request, bool with_stdin, std::int64_t hard_timeout_us);
  void go(const Exec& exec);  // to be called before anything else is asked of the session
  [[nodiscard]] Status signal(std::uint32_t exec_id, int signal);
  // The clocks of commands stand still, or go on: its first process, which would have to act on them, is stopped.
  void hold(bool still);
  // When it has ended: `done` is told what has a protected name and had none at the beginning, null where nothing is protected.
  void look_for_new(std::function<void(nlohmann::json)> done);
  // Kills everything. Idempotent; `ended` follows from the loop. hit: what limit, where it was one.
  void end(SessionEnd reason, nlohmann::json hit = {});

 private:
  Session(std::string id, std::shared_ptr<const confine::Template> prepared, uid_t uid, std::optional<confine::Cgroup> cgroup,
          Loop& loop, Events& events)
      : id_(std::move(id)), prepared_(std::move(prepared)), uid_(uid), cgroup_(std::move(cgroup)), loop_(loop), events_(events) {}

  [[nodiscard]] Status adopt(Fd socket);
  void read_init();
  void take_child(const confine::InitEvent& event);
  void take_steps(const std::vector<confine::StepRecord>& steps);
  void take(confine::InitEvent event);
  void take_ready();
  [[nodiscard]] Result<confine::Verified> verify() const;
  void take_exited(const init::Reply& reply);
  void built(Status status);
  void gone();  // the first process has been reaped, or there will be none
  void finish_removal(int attempt);
  void end_broken(SessionEnd reason, const Error& why);
  void kill_now();
  void sweep_orphans();
  void cancel_timers(Exec& exec);
  void arm(std::uint32_t id, Exec& exec, std::int64_t us);
  void await_start(std::uint32_t id, Exec& exec);
  void time_over(std::uint32_t id);

  const std::string id_;
  const std::shared_ptr<const confine::Template> prepared_;
  const uid_t uid_;
  uid_t sole_uid_ = 0;  // confine::Workspace::sole
  std::optional<confine::Cgroup> cgroup_;
  Loop& loop_;
  Events& events_;
  State state_ = State::building;
  Fd pidfd_;
  pid_t pid_ = 0;  // of the first process; 0: nobody has told of it yet
  bool first_gone_ = false, ready_ = false, listened_ = false;
  std::optional<confine::InitLink> link_;
  std::vector<confine::StepRecord> steps_;
  confine::Verified verified_;
  confine::Protection protection_;
  std::map<std::uint32_t, Exec> execs_;
  std::uint32_t next_exec_ = 1;
  Totals totals_;
  SessionEnd end_reason_;
  std::string end_detail_, denials_lost_;
  nlohmann::json end_hit_;
  Loop::TimerId deadline_ = 0;
};

}  // namespace caisson::session
