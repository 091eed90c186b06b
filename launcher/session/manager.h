// The table of sessions and what clients may do with them: picks policy and template, keeps a few sessions ready, audits,
// answers operations. All decisions about a request are made here and in the policy, none by the client.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/attest/key.h"
#include "launcher/audit/log.h"
#include "launcher/base/loop.h"
#include "launcher/base/sys.h"
#include "launcher/base/task.h"
#include "launcher/confine/canary.h"
#include "launcher/confine/cgroup.h"
#include "launcher/confine/session_builder.h"
#include "launcher/ipc/connection.h"
#include "launcher/policy/in_force.h"
#include "launcher/session/denials.h"
#include "launcher/session/homes.h"
#include "launcher/session/process_tree.h"
#include "launcher/session/refusals.h"
#include "launcher/session/session.h"
#include "launcher/session/workspace.h"

namespace caisson::session {

struct Settings {
  std::string policy_dir = "/etc/caisson/policies", audit_dir = "/var/log/caisson/audit", run_dir = "/run/caisson";
  std::string home = "/home/gem";                             // what sessions see as their home
  bool home_in_memory = false;                                // another one than was asked for, which cannot be written
  std::vector<std::pair<std::string, std::string>> residual;  // of this container, beside that of the policies: id, what
  std::string init_path, tools;
  std::string homes;                           // of persistent workspaces; empty: there are none
  std::string preset;                          // of the policies; empty: none
  std::string mounts, mount_table;             // where the operator's are granted; all: confine/volumes.h
  std::string default_cwd;                     // where clients start, told in hello
  unsigned port = 8080;                        // where the agent listens: what a canary tries to reach
  uid_t auditor_uid = 991;                     // of caisson-auditor, where uids can be changed
  std::string attest_key;                      // PEM file of the key that signs statements; empty: one is made at each start
  std::uint64_t audit_max_bytes = 1ULL << 30;  // of all audit logs; ended sessions' go first
  unsigned max_sessions = 1024;
  unsigned ready_sessions = 2;  // kept built per domain of the default workspace that is in use; 0: none
  WorkspaceSettings workspaces;
};

class Manager {
 public:
  // Probes, loads the policies, makes the default workspace and one template per domain. Errors say what to do.
  [[nodiscard]] static Result<std::unique_ptr<Manager>> create(Settings settings, Loop& loop);

  using Problems = std::vector<policy::Problem>;
  // Loads and checks the policy directory again; taken whole, or the old set stays and the problems come back. by: "SIGHUP".
  void reload(const std::string& by, std::function<void(const Problems&)> done);

  [[nodiscard]] const confine::Features& features() const { return features_; }
  void record(audit::Event event, json::Value fields);  // in the launcher's own log

  // A client's connection: the agent (sees its own sessions only) or an operator at the control socket (sees all).
  enum class Role { agent, operator_ };
  // Its number, for drop().
  std::uint64_t serve(Fd socket, Role role, std::function<void(const std::string& violation)> closed);
  // Ends a connection and its sessions, if it is still there.
  void drop(std::uint64_t number) { on_closed(number, ""); }

  // handover.cc: what outlives the agent. took_up: the last agent has asked for all that its predecessor left. forget: nobody
  // shall.
  [[nodiscard]] bool took_up() const { return took_up_; }
  void forget_kept();
  void on_restart(std::function<void()> restart) { restart_agent_ = std::move(restart); }

  // Ends every session; `done` is called once nothing is left.
  void shut_down(std::function<void()> done);

 private:
  struct Client {
    std::unique_ptr<ipc::Connection> connection;
    Role role = Role::agent;
    std::function<void(const std::string&)> closed;
    Refusals refusals;
  };
  // Of a command that outlives who asked for it: our copies of the client's ends, by name; how it ended, once it has.
  struct Kept {
    std::map<std::string, Fd> ends;
    json::Value exit;
  };
  struct Entry {
    std::unique_ptr<Session> session;
    bool keep = false;                 // it outlives its client, where that is the agent
    std::map<std::string, Kept> kept;  // by the command's label
    std::unique_ptr<audit::Log> log;
    Workspace* workspace = nullptr;
    std::uint64_t owner = 0;  // number of the client's connection; 0: ready, not yet given away
    std::string domain, label, created_at, destroy_reason;
    Result<std::string> start;  // its session_start record, prepared when it was built: before somebody waits, as a rule
    json::Value denials;        // totals, once the auditor has told them
    json::Value auto_run;       // at its end: what protected names it, or others meanwhile, newly made
    confine::ProbeResults canary;
    bool unread = false;                                             // not all of its memory could be counted, at least once
    std::int64_t create_id = 0;                                      // request to be answered once it is built
    json::Value request;                                             // what was asked, for the log
    std::map<std::uint32_t, std::int64_t> exec_ids;                  // exec -> request to be answered
    std::vector<std::pair<std::uint64_t, std::int64_t>> destroyers;  // connection and request to be answered at the end
    Loop::TimerId life = 0;
  };
  // While it is there the workspace is, too.
  class InUse {
   public:
    InUse(Manager& manager, Workspace& workspace) : manager_(manager), workspace_(workspace) { ++workspace.users; }
    ~InUse() {
      if (--workspace_.users == 0 && !workspace_.ending.empty())
        manager_.loop_.after(0, [manager = &manager_, name = workspace_.name] { manager->settle(name); });
    }

   private:
    Manager& manager_;
    Workspace& workspace_;
  };
  Manager(Settings settings, Loop& loop) : settings_(std::move(settings)), loop_(loop) {}
  [[nodiscard]] Task<Status> prepare();
  void begin(Task<Status> task);  // one that nobody waits for
  [[nodiscard]] std::size_t waiting_tasks();
  [[nodiscard]] Task<Problems> load_again(std::string by);
  [[nodiscard]] Task<Status> reload_and_tell(std::string by, std::function<void(const Problems&)> done);
  // All domains of a set: those in use made ready, of the others only what it needs to know that they could be.
  struct Taken {
    std::map<std::string, Domain> domains;
    std::map<std::string, std::string> refused;  // domain -> why its demands cannot be met here
    std::vector<policy::Problem> problems;
  };
  [[nodiscard]] Task<Taken> take(const policy::LoadResult& loaded);
  void refuse(std::map<std::string, std::string> domains);  // and says so
  [[nodiscard]] bool in_use(const std::string& domain) const;
  [[nodiscard]] Result<std::shared_ptr<const confine::Plan>> plan_domain(const Workspace& workspace, const Domain& domain,
                                                                         bool alone = false);
  // known: the canary's results of the same domain, for a policy that only narrows it. own: namespaces that serve one session.
  // In the workspace's turn.
  [[nodiscard]] Task<Result<Domain>> prepare_domain(const Workspace& workspace, std::shared_ptr<const policy::Policy> policy,
                                                    const confine::ProbeResults* known = nullptr,
                                                    const confine::Workspace* own = nullptr);
  [[nodiscard]] std::shared_ptr<const policy::Policy> in_place(const Workspace& workspace,
                                                               std::shared_ptr<const policy::Policy> policy);
  // Made ready; to be used before the next co_await.
  [[nodiscard]] Task<Result<Domain*>> domain_in(Workspace& workspace, const std::string& name);
  [[nodiscard]] std::string ungranted_file(const confine::Plan& plan) const;
  [[nodiscard]] Task<Result<confine::ProbeResults>> ask_canary(const Workspace& workspace, const confine::Template& prepared);
  [[nodiscard]] static Result<bool> fresh(Domain& domain);

  // workspaces.cc
  [[nodiscard]] Task<Result<confine::Workspace>> make_place(uid_t uid, gid_t gid, std::uint64_t disk_bytes) const;
  [[nodiscard]] Status admit(const WorkspaceRequest& request) const;
  [[nodiscard]] Task<Result<json::Value>> make_workspace(WorkspaceRequest request, Result<json::Value> home);
  [[nodiscard]] Result<json::Value> add_workspace(const WorkspaceRequest& request, const json::Value& home,
                                                  confine::Workspace place);
  [[nodiscard]] std::string boot_tag() const { return boot_id_.substr(0, 8); }  // in names of homes that end with us
  void measure_later(const Workspace& workspace, std::int64_t delay_us);
  [[nodiscard]] Result<Workspace*> find_workspace(const json::Value& body);
  [[nodiscard]] std::size_t sessions_in(const Workspace& workspace) const;
  void end_workspace(Workspace& workspace, const std::string& reason);
  void settle(const std::string& name);  // after a session's end: ends what is ending, lets time run out for what is idle
  [[nodiscard]] json::Value workspace_json(const Workspace& workspace) const;

  // lifecycle.cc: life of sessions
  [[nodiscard]] Result<Entry*> start(Workspace& workspace, const std::string& domain,
                                     std::shared_ptr<const confine::Template> prepared, const confine::Workspace& place);
  [[nodiscard]] Result<uid_t> take_uid(const Workspace& workspace);
  void free_uid(uid_t uid);  // one of the workspace itself stays its
  [[nodiscard]] Entry* ready_entry(const std::string& domain);
  void refill_later(const std::string& domain);
  void refill();
  [[nodiscard]] Status assign(Entry& entry);  // log, lifetime; the session runs from here on
  void on_built(Session& session, Status status);
  void on_started(Session& session, Exec& exec, int pid);
  void on_failed(Session& session, Exec& exec, const Error& error, const std::string& step);
  void on_exited(Session& session, Exec& exec, const init::Reply& reply);
  void on_ended(Session& session);
  void finish(const std::string& id);  // its last record
  void watchdog();
  void watch_covers();
  void watch_workspaces(const ProcessTree& tree, std::uint64_t files, std::vector<std::string>& groups);
  void weigh(std::vector<std::string> groups);
  static void over(Entry& entry, const std::string& what, const std::string& whose, std::uint64_t allowed, const Usage& usage);
  [[nodiscard]] const ProcessTree& processes() const;

  // records.cc: refused calls
  void start_auditor();
  void on_denial(const std::string& id, audit::Event event, json::Value fields, bool closed);

  // handover.cc
  static constexpr std::uint64_t kNobody = ~0ULL;  // owner of what an agent has left and no other has taken up yet
  [[nodiscard]] Result<Fd> keep_file(std::int64_t bytes);
  [[nodiscard]] bool leave_behind(Entry& entry) const;
  [[nodiscard]] bool room_to_keep(const Entry& entry) const;
  static void keep_ends(Entry& entry, const Exec& exec);
  void end_left();

  // logs.cc: which sessions have logs, and which of these go
  void sweep();
  [[nodiscard]] Status start_sweeper();
  [[nodiscard]] Status hear_sweeper();
  void sweep_in(std::int64_t delay_us);

  // statement.cc: what is attested
  [[nodiscard]] json::Value boot_statement() const;
  [[nodiscard]] json::Value session_statement(const Entry& entry) const;

  // answers.cc: one function an op
  using Answer = Result<json::Value>(ipc::Connection& connection, const ipc::Connection::Request& request);
  Answer answer_hello, answer_create, answer_exec, answer_signal, answer_stat, answer_report, answer_attest, answer_audit_list,
      answer_audit_open, answer_list, answer_destroy, answer_workspace_create, answer_workspace_list, answer_workspace_destroy,
      answer_workspace_pace, answer_policy, answer_reload, answer_adopt, answer_exec_adopt, answer_exec_release,
      answer_agent_restart;
  void on_request(ipc::Connection& connection, ipc::Connection::Request request);
  void answered(ipc::Connection& connection, const ipc::Connection::Request& request, Result<json::Value> done);
  // Answers when the task has ended, if somebody is there still.
  [[nodiscard]] Task<Status> answer_when(std::uint64_t number, ipc::Connection::Request request, Task<Result<json::Value>> done);
  struct Created {
    std::uint64_t client;  // and its request
    std::int64_t request;
    std::string domain, label;
    bool alone, keep;
    policy::Narrowing by = {};
    json::Value narrow = {};  // as it was asked for
    std::string digest = {};  // of the policy that it got
    confine::ProbeResults canary = {};
  };
  [[nodiscard]] Task<Result<json::Value>> create_session(Created wanted, Workspace* workspace);
  [[nodiscard]] Task<Result<Entry*>> find_place(Created& wanted, Workspace& workspace);
  [[nodiscard]] Status still_wanted(const Created& wanted, const Workspace& workspace);
  [[nodiscard]] Task<Result<json::Value>> reload_for(Role role);
  void on_closed(std::uint64_t number, const std::string& violation);
  void on_refused(const ipc::Connection& connection, const json::Value& body, const Error& error);
  void record_dropped(Refusals& refusals);
  [[nodiscard]] json::Value stat(const Entry& entry) const;
  // The session that a request is about. fields: the only ones that the request may have.
  [[nodiscard]] Result<Entry*> find(const ipc::Connection& connection, const json::Value& body,
                                    std::initializer_list<std::string_view> fields = {});
  ipc::Connection* connection(std::uint64_t number);

  const Settings settings_;
  Loop& loop_;
  const std::string boot_id_ = sys::random_hex(16), boot_time_ = sys::rfc3339(sys::realtime_ns());
  std::optional<attest::Key> key_;  // always there once create() succeeded
  confine::Features features_;
  confine::Builder builder_;
  std::unique_ptr<confine::CgroupRoot> cgroups_;
  std::unique_ptr<audit::Log> launcher_log_;
  std::unique_ptr<Denials> denials_;
  std::optional<Homes> homes_;  // always there once create() succeeded
  std::map<std::string, std::unique_ptr<Workspace>> workspaces_;
  Workspace* default_ = nullptr;
  policy::Limits tmp_limits_;                           // of every workspace's /tmp
  std::map<std::string, Domain> domains_;               // of the default workspace
  std::map<std::string, std::string> refused_domains_;  // domain -> why its demands cannot be met here
  std::string policies_digest_;
  std::int64_t next_reload_us_ = 0;  // before then the agent gets none
  bool reloading_ = false;
  std::uint64_t reloads_ = 0;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::map<std::uint64_t, Client> clients_;
  // T0: sessions' own. One that was somebody's is given again after all others.
  uid_t given_uids_ = 0;
  std::deque<uid_t> free_uids_;
  std::set<std::string> refill_;
  bool refill_scheduled_ = false;
  mutable ProcessTree tree_;
  mutable std::int64_t tree_until_us_ = 0;
  bool weighing_ = false;
  std::vector<std::uint64_t> logs_;  // numbers of the sessions that have one, sorted: there may be 65,536 and more
  Fd sweeper_, sweeper_socket_;      // of caisson-logs, while it runs
  std::uint64_t sweep_full_ = 0;     // bytes that may be written before the next
  Loop::TimerId sweep_timer_ = 0;
  std::function<void()> shut_down_, restart_agent_;
  Fd keep_;  // memory in which an agent leaves word for the next; never read nor mapped here
  bool took_up_ = false;
  Loop::TimerId left_ = 0;         // when what nobody takes up ends
  std::list<Task<Status>> tasks_;  // the last member: they use all others
};

}  // namespace caisson::session
