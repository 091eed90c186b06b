// The operations of the launcher (common/ipc/ops.h), one function each: what a client may do with sessions, workspaces and
// policies is decided here and in the policy, nothing by the client. The tables do the work (Clients, Domains, Sessions,
// Workspaces); this makes them, wires them together and holds the tasks that requests wait for.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "launcher/common/base/task.h"
#include "launcher/pid1/session/clients.h"
#include "launcher/pid1/session/domains.h"
#include "launcher/pid1/session/host.h"
#include "launcher/pid1/session/logs.h"
#include "launcher/pid1/session/sessions.h"
#include "launcher/pid1/session/uids.h"
#include "launcher/pid1/session/watchdog.h"
#include "launcher/pid1/session/workspaces.h"

namespace caisson::session {

class Operations {
 public:
  // Probes, loads the policies, makes the default workspace and one template per domain. Errors say what to do.
  [[nodiscard]] static Result<std::unique_ptr<Operations>> create(Settings settings, Loop& loop);

  using Problems = Domains::Problems;
  // Loads and checks the policy directory again; taken whole, or the old set stays and the problems come back. by: "SIGHUP".
  void reload(const std::string& by, std::function<void(const Problems&)> done);

  [[nodiscard]] const confine::Features& features() const { return host_.features; }
  void record(audit::Event event, json::Value fields) { host_.record(event, std::move(fields)); }

  using Role = ipc::Role;
  // Its number, for drop().
  std::uint64_t serve(Fd socket, Role role, Clients::Closed closed);
  // Ends a connection and its sessions, if it is still there.
  void drop(std::uint64_t number) { clients_.drop(number); }

  [[nodiscard]] bool took_up() const { return sessions_.took_up(); }
  void forget_kept() { sessions_.forget_kept(); }
  void on_restart(std::function<void()> restart) { restart_agent_ = std::move(restart); }

  // Ends every session; `done` is called once nothing is left.
  void shut_down(std::function<void()> done) { sessions_.shut_down(std::move(done)); }

 private:
  Operations(Settings settings, Loop& loop);
  [[nodiscard]] Task<Status> prepare();
  void start_auditor();
  void begin(Task<Status> task);  // one that nobody waits for
  static constexpr std::size_t kMaxTasks = 256;
  [[nodiscard]] std::size_t waiting_tasks();
  [[nodiscard]] Task<Problems> load_again(std::string by);
  [[nodiscard]] Task<Status> reload_and_tell(std::string by, std::function<void(const Problems&)> done);

  // answers.cc, server_answers.cc
  using Answer = Result<json::Value>(ipc::Connection& connection, const ipc::Connection::Request& request);
  Answer answer_hello, answer_create, answer_exec, answer_signal, answer_stat, answer_report, answer_attest, answer_audit_list,
      answer_audit_open, answer_list, answer_destroy, answer_workspace_create, answer_workspace_list, answer_workspace_destroy,
      answer_workspace_pace, answer_workspace_connect, answer_policy, answer_reload, answer_adopt, answer_exec_adopt,
      answer_exec_release, answer_agent_restart, answer_note;
  void on_request(ipc::Connection& connection, ipc::Connection::Request request);
  void answered(ipc::Connection& connection, const ipc::Connection::Request& request, Result<json::Value> done);
  // Answers when the task has ended, if somebody is there still.
  [[nodiscard]] Task<Status> answer_when(std::uint64_t number, ipc::Connection::Request request, Task<Result<json::Value>> done);
  struct Created {
    std::uint64_t client;  // and its request
    std::int64_t request;
    std::string domain, label;
    bool alone, keep;
    json::Value narrow = {};  // as it was asked for
    std::string digest = {};  // of the policy that it got
    confine::ProbeResults canary = {};
  };
  [[nodiscard]] Task<Result<json::Value>> create_session(Created wanted, Workspace* workspace);
  [[nodiscard]] Task<Result<Entry*>> find_place(Created& wanted, Workspace& workspace);
  [[nodiscard]] Status still_wanted(const Created& wanted, const Workspace& workspace);
  [[nodiscard]] Task<Result<json::Value>> reload_for(Role role);
  // connect.cc
  [[nodiscard]] Task<Status> connect(std::uint64_t client, std::int64_t request, Workspace* workspace, std::int64_t port);
  void on_refused(const ipc::Connection& connection, const json::Value& body, const Error& error);
  [[nodiscard]] json::Value stat(const Entry& entry);
  // The session that a request is about.
  [[nodiscard]] Result<Entry*> find(const ipc::Connection& connection, const json::Value& body) const;

  Host host_;
  const Settings& settings_ = host_.settings;
  Loop& loop_;
  std::function<void()> restart_agent_;
  std::int64_t next_reload_us_ = 0;  // before then the agent gets none
  // Each refers to those above it. Workspaces, which also uses the sessions in them, has to outlive these.
  Clients clients_;
  Uids uids_;
  Workspaces workspaces_;
  Domains domains_;
  Logs logs_;
  Sessions sessions_;
  Watchdog watchdog_;
  std::list<Task<Status>> tasks_;  // the last member: they use all others
};

}  // namespace caisson::session
