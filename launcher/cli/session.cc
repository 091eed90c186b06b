// `caisson session ls|kill|report`: asks the running launcher over its control socket, which serves root alone.
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cstring>

#include "launcher/audit/show.h"
#include "launcher/cli/args.h"
#include "launcher/cli/commands.h"
#include "launcher/cli/logs.h"
#include "launcher/ipc/channel.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kRootOnly = "the launcher's control socket serves root alone";
constexpr int kAnswerSeconds = 30;  // the longest a session's end may take

Code code_from(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Code::internal); ++i)
    if (code_name(static_cast<Code>(i)) == name) return static_cast<Code>(i);
  return Code::internal;
}

class Control {
 public:
  [[nodiscard]] static Result<Control> connect(const Options& options) {
    const std::string path = options.socket.empty() ? options.run + "/control.sock" : options.socket;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
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
    Control control(std::move(fd));
    json::Value hello = json::Value::object();
    hello["protocol"] = ipc::kProtocolVersion;
    auto answer = control.ask("hello", std::move(hello));
    if (!answer && answer.error().code == Code::unavailable)
      return fail(Code::permission_denied, "the launcher closed the connection: " + std::string(kRootOnly));
    if (!answer) return std::unexpected(std::move(answer.error()));
    return control;
  }

  [[nodiscard]] Result<json::Value> ask(std::string_view op, json::Value request) {
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
      if (body.value("ok", json::Value()) == true) return std::move(body);
      const json::Value error = body.value("error", json::Value::object());
      const auto code = json::get_string(error, "code"), what = json::get_string(error, "what");
      return fail(code && *code ? code_from(**code) : Code::internal, what && *what ? **what : "the launcher gave no reason");
    }
  }

 private:
  explicit Control(Fd fd) : fd_(std::move(fd)) {}
  static std::unexpected<Error> gone() { return fail(Code::unavailable, "the launcher closed the connection"); }

  Fd fd_;
  int id_ = 0;
};

json::Value about(const std::string& session) {
  json::Value request = json::Value::object();
  request["session"] = session;
  return request;
}

std::string cell(const json::Value& stat, const char* key) {
  const auto it = stat.find(key);
  return it == stat.end() || it->is_null() ? "-" : audit::show_value(*it);
}

Status kill_all(const std::vector<std::string>& sessions, const std::string& reason, const Options& options) {
  TRY_ASSIGN(Control control, Control::connect(options));
  for (const std::string& session : sessions) {
    json::Value request = about(session);
    request["reason"] = reason;
    if (auto answer = control.ask("session_destroy", std::move(request)); !answer)
      return std::unexpected(std::move(answer.error()).wrap("session " + quote(session)));
  }
  return {};
}

Result<json::Value> ask_once(const Options& options, std::string_view op, json::Value request) {
  TRY_ASSIGN(Control control, Control::connect(options));
  return control.ask(op, std::move(request));
}

}  // namespace

int session_ls(Arguments args, const Options& options) {
  if (const auto parsed = Args::parse(args, {}, 0, 0); !parsed) return report_error(parsed.error(), options);
  const auto answer = ask_once(options, "session_list", json::Value::object());
  if (!answer) return report_error(answer.error(), options);
  const json::Value sessions = answer->value("sessions", json::Value::array());
  if (options.json) {
    json::Value document = json::Value::object();
    document["sessions"] = sessions;
    print_json(document);
    return 0;
  }
  static constexpr const char* kColumns[] = {"session",   "domain",       "state",      "tier", "execs",
                                             "processes", "memory_bytes", "created_at", "label"};
  std::vector<std::vector<std::string>> rows = {
      {"SESSION", "DOMAIN", "STATE", "TIER", "EXECS", "PROCS", "MEMORY", "CREATED", "LABEL"}};
  for (const json::Value& session : sessions) {
    auto& row = rows.emplace_back();
    for (const char* column : kColumns) row.push_back(cell(session, column));
  }
  print(table(rows));
  return 0;
}

int session_kill(Arguments words, const Options& options) {
  static constexpr Flag kFlags[] = {{"--reason", "", true}};
  const auto args = Args::parse(words, kFlags, 1, 1000);
  if (!args) return report_error(args.error(), options);
  const Status status = kill_all(args->words(), args->last("--reason").value_or("caisson session kill"), options);
  if (!status) return report_error(status.error(), options);
  if (options.json) {
    json::Value document = json::Value::object();
    document["ok"] = true;
    document["ended"] = args->words();
    print_json(document);
  }
  return 0;
}

int session_report(Arguments words, const Options& options) {
  const auto args = Args::parse(words, {}, 1, 1);
  if (!args) return report_error(args.error(), options);
  const auto answer = ask_once(options, "session_report", about(args->words()[0]));
  if (!answer) return report_error(answer.error(), options);
  const json::Value report = answer->value("report", json::Value::object());
  if (options.json) {
    print_json(report);
    return 0;
  }
  print(outline(report));
  return 0;
}

}  // namespace caisson::cli
