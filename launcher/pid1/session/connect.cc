// Sockets of the agent in a workspace's network, which it may not enter itself: connections to servers of sessions, and listeners
// for what sessions ask of the API (policies' `api`); and its lines to caisson-gate, for what their clients set of their way out.
#include "launcher/pid1/session/operations.h"

namespace caisson::session {

Result<json::Value> Operations::answer_workspace_connect(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const auto port, json::get_int(request.body, "port"));
  if (!port || *port < 0 || *port > 65535) return fail(Code::invalid_argument, "'port' must be from 0 to 65535");
  TRY_ASSIGN(Workspace * workspace, workspaces_.find(request.body));
  TRY_ASSIGN(const auto listen, json::get_bool(request.body, "listen"));
  TRY(runs(*workspace));
  if (waiting_tasks() >= kMaxTasks) return fail(Code::limit, "too many connections are being made: try again");
  begin(connect(c.number(), request.id, workspace, *port + (listen == true ? builder::kListens : 0)));
  return json::Value();  // answered by then
}

Task<Status> Operations::connect(std::uint64_t client, std::int64_t request, Workspace* workspace, std::int64_t port) {
  const auto use = workspaces_.use(*workspace);
  Result<std::vector<Fd>> made;
  if (port != 0) made = co_await host_.builder.connect(loop_, workspace->place, static_cast<std::uint32_t>(port));
  else if (auto line = host_.egress->line(*workspace, clients_.role(client) == ipc::Role::operator_))
    made->push_back(std::move(*line));
  else made = std::unexpected(line.error());
  ipc::Connection* c = clients_.find(client);
  if (c == nullptr) co_return Status();
  if (!made) co_return c->reply_error(request, made.error(), "request"), Status();
  c->reply(request, json::Value::object(), std::move(*made));
  co_return Status();
}

}  // namespace caisson::session
