#include "launcher/cli/gate_line.h"

#include <poll.h>
#include <sys/socket.h>

#include "launcher/cli/control_client.h"
#include "launcher/common/base/word.h"
#include "launcher/common/policy/policy.h"

namespace caisson::cli {
namespace {

constexpr int kAnswerMs = 30'000;
constexpr json::Bounds kAnswer{.max_bytes = way::kMaxMessage, .max_depth = 8, .max_values = 8192};

bool goes_out(const json::Value& policy) {
  using policy::Network;
  for (const auto network : {Network::allowlist, Network::monitor, Network::open})
    if (policy.value("network", "") == word(words(network), static_cast<std::size_t>(network))) return true;
  return false;
}

std::string_view name(ipc::Op op) { return ipc::kOps[static_cast<std::size_t>(op)].name; }

// The launcher makes it for the first session that has one.
Status open_way(ControlClient& control, const std::string& workspace) {
  TRY_ASSIGN(const json::Value all, control.ask(name(ipc::Op::policy), json::Value::object()));
  const json::Value domains = all.value("domains", json::Value::object());
  for (const auto& [domain, about] : domains.items()) {
    TRY_ASSIGN(const json::Value one, control.ask(name(ipc::Op::policy), {{"domain", domain}}));
    if (!goes_out(one.value("policy", json::Value::object()))) continue;
    json::Value request = {{"domain", domain}, {"workspace", workspace}, {"label", "way out"}};
    TRY_ASSIGN(const json::Value made, control.ask(name(ipc::Op::session_create), std::move(request)));
    TRY(control.ask(name(ipc::Op::session_destroy),
                    {{"session", made.value("session", "")}, {"reason", "its workspace has its way out"}}));
    return {};
  }
  return fail(Code::unavailable, "no domain of the policy has a way out");
}

}  // namespace

Result<GateLine> GateLine::connect(const std::string& workspace, const Options& options, bool open) {
  TRY_ASSIGN(ControlClient control, ControlClient::connect(options));
  const json::Value request = {{"workspace", workspace}, {"port", 0}};
  auto line = control.ask_for_fd(name(ipc::Op::workspace_connect), request);
  if (!line && open && line.error().code == Code::unavailable) {
    TRY(open_way(control, workspace));
    line = control.ask_for_fd(name(ipc::Op::workspace_connect), request);
  }
  if (!line) return std::unexpected(std::move(line).error());
  return GateLine(std::move(*line));
}

Result<json::Value> GateLine::ask(way::Op op, json::Value request) const {
  request["op"] = word(words(op), static_cast<std::size_t>(op));
  const std::string text = json::dump(request);
  std::string answer(way::kMaxMessage + 1, '\0');
  if (::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) return sys_error("send to caisson-gate");
  pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};  // the launcher's lines do not block
  const ssize_t size = ::poll(&ready, 1, kAnswerMs) == 1 ? ::recv(fd_.get(), answer.data(), answer.size(), 0) : -1;
  if (size <= 0) return fail(Code::unavailable, "caisson-gate gave no answer: try again");
  TRY_ASSIGN(json::Value body, json::parse({answer.data(), static_cast<std::size_t>(size)}, kAnswer));
  if (!body.contains("error")) return body.value("result", json::Value::object());
  return fail(code_from(body.value("error", "")), body.value("what", ""));
}

}  // namespace caisson::cli
