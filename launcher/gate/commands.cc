#include "launcher/gate/commands.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <utility>

#include "launcher/common/base/session_id.h"
#include "launcher/common/base/sys.h"
#include "launcher/gate/secrets.h"
#include "launcher/gate/settings.h"

namespace caisson::gate {
namespace {

constexpr const char* kSystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

Result<Fd> connect_to(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof address.sun_path) return fail(Code::invalid_argument, "path of the control socket is too long");
  ::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return sys_error("connect to the launcher's control socket");
  return fd;
}

// Reads the pipe of a command that has ended. Output beyond the bound is an error.
Result<std::string> printed_in(int pipe) {
  char bytes[kMaxCredentialFile + 2];
  const ssize_t size = ::read(pipe, bytes, sizeof bytes);
  if (size < 0 && errno != EAGAIN) return sys_error("read what it printed");
  std::string_view text(bytes, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (text.ends_with('\n')) text.remove_suffix(1);
  Result<std::string> out = fail(Code::invalid_argument, "it printed nothing, or more than 1,024 bytes");
  if (!text.empty() && text.size() <= kMaxCredentialFile) out = std::string(text);
  ::explicit_bzero(bytes, sizeof bytes);
  return out;
}

}  // namespace

void Commands::run(std::string workspace, std::string key, std::string command, std::string label, Done done) {
  const auto beside = std::ranges::count(runs_, workspace, &Run::workspace);
  if (std::cmp_greater_equal(beside, kMostWaitingOf)) {
    loop_.after(0, [done = std::move(done)] { done(fail(Code::limit, "too many commands of its workspace wait")); });
    return;
  }
  runs_.push_back({std::move(workspace), std::move(key), std::move(command), std::move(label), std::move(done),
                   sys::monotonic_us() + kStartUs});
  begin_later(0);
}

void Commands::forget(const std::string& workspace, const std::string& key) {
  std::erase_if(runs_, [&](const Run& one) { return !one.task && one.workspace == workspace && one.key == key; });
}

void Commands::begin_later(std::int64_t wait_us) {
  if (!std::exchange(begins_, true)) loop_.after(wait_us, [this] { begins_ = false, begin(); });
}

void Commands::begin() {
  std::erase_if(runs_, [](const Run& one) { return one.task && one.task->done(); });
  for (Run& run : runs_) {
    const auto begun = [](const Run& one) { return one.task.has_value(); };
    const auto beside = [&run](const Run& one) { return one.task && one.workspace == run.workspace; };
    if (run.task || !std::cmp_less(std::ranges::count_if(runs_, begun), kMost) ||
        !std::cmp_less(std::ranges::count_if(runs_, beside), kMostOf))
      continue;
    Result<Fd> control = connect_to(path_);
    if (!control && sys::monotonic_us() < run.until_us) return begin_later(kAgainUs);
    run.task.emplace(carry_out(run, std::move(control)));
  }
}

Task<Status> Commands::carry_out(Run& run, Result<Fd> control) {
  Result<std::string> printed = co_await print(run, std::move(control));
  run.done(std::move(printed));
  begin_later(0);  // whoever waits has its turn, and this goes
  co_return Status();
}

// The session ends with the connection.
Task<Result<std::string>> Commands::print(const Run& run, Result<Fd> connected) {
  const std::int64_t deadline_us = sys::monotonic_us() + kPatienceUs;
  CO_TRY_ASSIGN(const Fd control, std::move(connected));
  json::Value request{{"protocol", ipc::kProtocolVersion}};
  CO_TRY(co_await ask(control.get(), ipc::Op::hello, std::move(request), deadline_us));
  request = {{"domain", kCredentialsDomain}, {"workspace", run.workspace}, {"label", run.label}};
  CO_TRY_ASSIGN(const ipc::Message made, co_await ask(control.get(), ipc::Op::session_create, std::move(request), deadline_us));
  CO_TRY_ASSIGN(const std::string session, text_of(made.body, "session"));
  request = {{"session", session}, {"stdin", false}, {"hard_timeout_ms", kPatienceUs / 1000}};
  // Nobody reads what it says of errors, and a pipe that is full would stop it.
  request["argv"] = json::Value::array({"/bin/sh", "-c", "exec 2>/dev/null\n" + run.command});
  // Without mounts its home is that of other sessions: no program or setting that they leave there, such as .curlrc, is its own.
  request["cwd"] = "/";
  request["env"] = {{"HOME", "/"}, {"PATH", kSystemPath}, {"WORKSPACE", "/"}, {"NPM_CONFIG_PREFIX", nullptr}};
  CO_TRY_ASSIGN(const ipc::Message started, co_await ask(control.get(), ipc::Op::session_exec, std::move(request), deadline_us));
  if (started.fds.size() != 2) co_return fail(Code::protocol, "the launcher sent no pipes");
  const std::string exec = started.body.value("exec", "");
  for (;;) {
    CO_TRY_ASSIGN(const ipc::Message event, co_await hear(control.get(), deadline_us));
    const std::string what = event.body.value("event", "");
    if (what == "session_end") co_return fail(Code::unavailable, "its session ended before it did");
    if (what != "exec_exit" || event.body.value("exec", "") != exec) continue;
    // An error message of the command may hold the secret: it is not told.
    if (event.body.value("exit_code", -1) != 0) co_return fail(Code::io, "it failed: " + event.body.value("reason", ""));
    co_return printed_in(started.fds[0].get());
  }
}

Task<Result<ipc::Message>> Commands::ask(int control, ipc::Op op, json::Value request, std::int64_t deadline_us) {
  request["op"] = ipc::kOps[static_cast<std::size_t>(op)].name;
  request["id"] = 1;  // one question at a time
  CO_TRY(ipc::send(control, request));
  for (;;) {
    CO_TRY_ASSIGN(ipc::Message message, co_await hear(control, deadline_us));
    if (!message.body.contains("id")) continue;  // an event
    if (message.body.value("ok", false)) co_return std::move(message);
    const json::Value error = message.body.value("error", json::Value::object());
    co_return fail(Code::unavailable, "the launcher refuses it: " + error.value("what", ""));
  }
}

Task<Result<ipc::Message>> Commands::hear(int control, std::int64_t deadline_us) {
  for (;;) {
    CO_TRY_ASSIGN(auto message, ipc::receive(control, ipc::Wait::no));
    if (message) co_return std::move(*message);
    const bool ready = co_await Readable(loop_, control, deadline_us);
    if (!ready) co_return fail(Code::timeout, "it did not end within 30 s");
  }
}

}  // namespace caisson::gate
