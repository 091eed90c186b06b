#include "launcher/cli/control_client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cstring>

namespace caisson::cli {
namespace {

constexpr std::string_view kRootOnly = "the launcher's control socket serves root alone";
constexpr int kAnswerSeconds = 30;  // the longest a session's end may take

std::unexpected<Error> gone() { return fail(Code::unavailable, "the launcher closed the connection"); }

}  // namespace

Code code_from(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Code::internal); ++i)
    if (code_name(static_cast<Code>(i)) == name) return static_cast<Code>(i);
  return Code::internal;
}

Result<ControlClient> ControlClient::connect(const Options& options) {
  const std::string path = options.socket.empty() ? options.run + "/control.sock" : options.socket;
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.size() >= sizeof address.sun_path) return fail(Code::invalid_argument, "socket path too long: " + quote(path));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return sys_error("socket");
  const timeval limit{.tv_sec = kAnswerSeconds, .tv_usec = 0};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) return sys_error("setsockopt SO_RCVTIMEO");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED)
      return fail(Code::unavailable, "no launcher answers at " + quote(path) + ": is it running, and in this container?");
    if (errno == EACCES || errno == EPERM) return fail(Code::permission_denied, std::string(kRootOnly));
    return sys_error("connect " + quote(path));
  }
  ControlClient control(std::move(fd));
  auto answer = control.ask("hello", {{"protocol", ipc::kProtocolVersion}});
  if (!answer && answer.error().code == Code::unavailable)
    return fail(Code::permission_denied, "the launcher closed the connection: " + std::string(kRootOnly));
  if (!answer) return std::unexpected(std::move(answer.error()));
  return control;
}

Result<json::Value> ControlClient::ask(std::string_view op, json::Value request) {
  TRY_ASSIGN(ipc::Message answer, message(op, std::move(request)));
  return std::move(answer.body);
}

Result<Fd> ControlClient::ask_for_fd(std::string_view op, json::Value request) {
  TRY_ASSIGN(ipc::Message answer, message(op, std::move(request)));
  if (answer.fds.size() != 1) return fail(Code::protocol, "the launcher sent no descriptor");
  return std::move(answer.fds.front());
}

Result<ipc::Message> ControlClient::message(std::string_view op, json::Value request) {
  request["id"] = ++id_;
  request["op"] = op;
  if (const Status sent = ipc::send(fd_.get(), request); !sent) {
    if (sent.error().sys == EPIPE || sent.error().sys == ECONNRESET) return gone();
    return std::unexpected(sent.error());
  }
  for (;;) {
    auto message = ipc::receive(fd_.get(), ipc::Wait::yes);
    if (!message && message.error().sys == EAGAIN) return fail(Code::timeout, "the launcher did not answer in time");
    if (!message && (message.error().code == Code::not_found || message.error().sys == ECONNRESET)) return gone();
    if (!message) return std::unexpected(std::move(message.error()));
    json::Value& body = (*message)->body;
    if (!body.contains("id")) continue;  // an event
    if (body["id"] != id_) return fail(Code::protocol, "the launcher answered another question");
    if (body.value("ok", json::Value()) == true) return std::move(**message);
    const json::Value error = body.value("error", json::Value::object());
    const auto code = json::get_string(error, "code"), what = json::get_string(error, "what");
    return fail(code && *code ? code_from(**code) : Code::internal, what && *what ? **what : "the launcher gave no reason");
  }
}

}  // namespace caisson::cli
