#include "agent/bridge/way_client.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "launcher/common/base/session_id.h"
#include "launcher/common/base/word.h"

namespace caisson::bridge {
namespace {

constexpr std::chrono::seconds kPatience{35};  // longer than the gate's own
constexpr json::Bounds kAnswer{.max_bytes = way::kMaxMessage, .max_depth = 8, .max_values = 8192};

task<std::string> receive(asio::posix::stream_descriptor& line) {
  std::string text(way::kMaxMessage + 1, '\0');
  for (;;) {
    const ssize_t size = ::recv(line.native_handle(), text.data(), text.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      auto [error] = co_await line.async_wait(asio::posix::stream_descriptor::wait_read, as_values);
      if (error) co_return asio_error("wait for caisson-gate", error);
      continue;
    }
    if (size <= 0) co_return fail(Code::limit, "caisson-gate has ended the line: try again");
    text.resize(static_cast<std::size_t>(size));
    co_return text;
  }
}

task<json::Value> ask(asio::any_io_executor executor, Fd fd, std::string text) {
  asio::posix::stream_descriptor line(std::move(executor), fd.release());
  if (::send(line.native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    co_return sys_error("send to caisson-gate");
  task<std::string> waiting = receive(line);
  CO_TRY_ASSIGN(const std::string answer, co_await with_timeout(std::move(waiting), kPatience, "caisson-gate says nothing"));
  CO_TRY_ASSIGN(json::Value body, json::parse(answer, kAnswer));
  if (!body.is_object()) co_return fail(Code::io, "caisson-gate sent no object");
  if (!body.contains("error")) co_return body.value("result", json::Value());
  co_return fail(code_from(body.value("error", "")), body.value("what", ""));
}

bool goes_out(const json::Value& policy) {
  const std::string network = policy.is_object() ? policy.value("network", "") : "";
  return network == "allowlist" || network == "monitor" || network == "open";
}

// A way out is made for the first session that has one.
task<void> open_way(LauncherClient& launcher, std::string workspace) {
  CO_TRY_ASSIGN(const json::Value all, co_await launcher.policy(""));
  const json::Value domains = all.value("domains", json::Value::object());
  for (const auto& [domain, about] : domains.items()) {
    CO_TRY_ASSIGN(const json::Value answer, co_await launcher.policy(domain));
    if (domain == kCredentialsDomain || !goes_out(answer.value("policy", json::Value()))) continue;
    CO_TRY_ASSIGN(auto session, co_await launcher.session_create(domain, "way out", workspace));
    co_return co_await launcher.session_destroy(std::move(session), "its workspace has its way out");
  }
  co_return fail(Code::permission_denied,
                 "no domain of the policy has a way out: one needs \"network\": \"allowlist\", and rules in \"egress\" "
                 "(policies/README.md)");
}

}  // namespace

task<json::Value> ask_way(LauncherClient& launcher, std::string workspace, json::Value request) {
  std::string text = json::dump(request);
  if (text.size() > way::kMaxMessage) co_return fail(Code::invalid_argument, "the request is too long");
  Result<Fd> line = co_await launcher.workspace_connect(workspace, 0);
  if (!line && line.error().code == Code::unavailable) {
    CO_TRY(co_await open_way(launcher, workspace));
    line = co_await launcher.workspace_connect(workspace, 0);
  }
  if (!line) co_return std::unexpected(std::move(line).error());
  co_return co_await ask(launcher.executor(), std::move(*line), std::move(text));
}

task<json::Value> look_at_way(LauncherClient& launcher, std::string workspace, way::Op op, json::Value request) {
  CO_TRY_ASSIGN(Fd line, co_await launcher.workspace_connect(std::move(workspace), 0));
  request["op"] = word(words(way::Op{}), static_cast<std::size_t>(op));
  co_return co_await ask(launcher.executor(), std::move(line), json::dump(request));
}

}  // namespace caisson::bridge
