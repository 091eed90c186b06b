// Connections of the agent, which may not connect itself, to servers of sessions: into their workspace's network, and only there;
// and its lines to caisson-gate, for what their clients set of their way out.
#include "launcher/pid1/session/operations.h"

namespace caisson::session {

Result<json::Value> Operations::answer_workspace_connect(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const auto port, json::get_int(request.body, "port"));
  if (!port || *port < 0 || *port > 65535) return fail(Code::invalid_argument, "'port' must be from 0 to 65535");
  TRY_ASSIGN(Workspace * workspace, workspaces_.find(request.body));
  TRY(runs(*workspace));
  if (waiting_tasks() >= kMaxTasks) return fail(Code::limit, "too many connections are being made: try again");
  begin(connect(c.number(), request.id, workspace, static_cast<std::uint16_t>(*port)));
  return json::Value();  // answered by then
}

Task<Status> Operations::connect(std::uint64_t client, std::int64_t request, Workspace* workspace, std::uint16_t port) {
  const auto use = workspaces_.use(*workspace);
  Result<Fd> made = port == 0 ? host_.egress->line(*workspace, clients_.role(client) == ipc::Role::operator_) : Fd();
  if (port != 0) made = co_await host_.builder.connect(loop_, workspace->place, port);
  ipc::Connection* c = clients_.find(client);
  if (c == nullptr) co_return Status();
  if (!made) co_return c->reply_error(request, made.error(), "request"), Status();
  std::vector<Fd> fds;
  fds.push_back(std::move(*made));
  c->reply(request, json::Value::object(), std::move(fds));
  co_return Status();
}

}  // namespace caisson::session
