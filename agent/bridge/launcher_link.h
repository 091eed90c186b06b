// The connection behind LauncherClient: socket, outbox, pending requests, and the handles that events are delivered to.
// Included by bridge/*.cc alone.
#pragma once

#include <deque>
#include <map>

#include "agent/bridge/launcher_client.h"
#include "agent/metrics/metric_table.h"

namespace caisson::bridge {

// Counts an end by its reason, and the wall or limit behind it.
void count_end(metrics::Id id, const End& end);

struct LauncherClient::Pending {
  explicit Pending(asio::any_io_executor executor, ipc::Op o) : op(o), changed(std::move(executor)) {}
  ipc::Op op;
  std::string session;               // session_exec: in which session the reply starts an exec
  std::string domain;                // session_create: of the new session
  std::int64_t hard_timeout_ms = 0;  // and its hard timeout
  bool keep = false;                 // and whether it outlives us
  std::optional<ipc::Message> reply;
  std::shared_ptr<ExecHandle> exec;  // session_exec: made when the reply is read, before an event can follow it
  std::shared_ptr<SessionHandle> created;
  bool abandoned = false;  // its caller has gone
  Clock::time_point since = Clock::now();
  Notifier changed;
};

struct LauncherClient::Link : std::enable_shared_from_this<Link> {
  Link(asio::any_io_executor e, Fd fd, std::function<void(Error)> gone);

  // Sends now, or queues while the launcher does not read.
  Status submit(json::Value body);
  // Sends a request and ignores its answer.
  Status post(ipc::Op op, json::Value body);
  // Takes one message. Code::protocol: the launcher may not send it now.
  Status dispatch(ipc::Message message);
  void give_up(Error error);

  asio::any_io_executor executor;
  asio::posix::stream_descriptor socket;
  std::function<void(Error)> on_gone;
  std::function<void(const std::string&)> on_workspace_end;
  std::function<void()> on_policy_reload;
  std::function<void(const SessionHandle&)> on_session_end;
  Clock::time_point last_word = Clock::now();  // of the launcher
  bool gone = false;
  bool writing = false;
  std::int64_t next_id = 1;
  std::deque<json::Value> outbox;
  std::map<std::int64_t, std::shared_ptr<Pending>> pending;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<ExecHandle>> execs;  // by session and exec
  std::map<std::string, std::weak_ptr<SessionHandle>> sessions;

 private:
  std::shared_ptr<ExecHandle> make_exec(const std::string& session, const std::string& id, bool keep);
  Status take_reply(std::int64_t id, ipc::Message message);
  Status take_exec_exit(const json::Value& event);
  Status take_session_end(const json::Value& event);
};

}  // namespace caisson::bridge
