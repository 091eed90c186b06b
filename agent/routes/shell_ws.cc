#include "agent/routes/shell_ws.h"

#include "agent/services/common/counted.h"
#include "agent/services/common/text.h"
#include "agent/services/shell/shell_service.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/base/sys.h"

namespace caisson::routes {
namespace {

using services::ShellService;
using services::ShellSession;

constexpr double kPingSeconds = 30;
constexpr std::size_t kPieceBytes = 32 * 1024;
constexpr std::size_t kReplayBytes = 64 * 1024;

std::string message(std::string_view type, std::string data) { return json::dump({{"type", type}, {"data", std::move(data)}}); }

// Sends what the screen gets, from `at` on, and pings, until the session ends or the client is gone. It closes the
// connection itself: once it has returned, the reading beside it is cancelled, and Beast closes no stream whose read was.
task<void> send_output(http::WebSocket socket, ShellService::SessionPtr s, std::uint64_t at) {
  auto next_ping = bridge::deadline_after(kPingSeconds);
  while (true) {
    std::string bytes = s->screen().read(at, kPieceBytes);
    const std::uint64_t start = std::max(at, s->screen().begin());
    const std::size_t cut = services::incomplete_tail(bytes);
    if (bytes.size() > cut) {
      bytes.resize(bytes.size() - cut);
      at = start + bytes.size();
      std::string text = message("output", services::to_utf8(bytes));
      CO_TRY(co_await socket.send(std::move(text)));
      continue;
    }
    const bool over = s->closed() || (s->for_person && !s->alive());
    if (over) co_return co_await socket.close(1000, "the shell has ended");
    if (co_await s->changed.wait_until(next_ping)) continue;
    next_ping = bridge::deadline_after(kPingSeconds);
    std::string ping = json::dump({{"type", "ping"}, {"timestamp", sys::realtime_ns() / 1'000'000}});
    CO_TRY(co_await socket.send(std::move(ping)));
  }
}

// The size may stand in data or beside type.
std::optional<bridge::PtySize> size_of(const json::Value& body) {
  const auto data = body.find("data");
  const json::Value& from = data != body.end() && data->is_object() ? *data : body;
  const auto cols = json::get_int(from, "cols");
  const auto rows = json::get_int(from, "rows");
  if (!cols || !*cols || !rows || !*rows) return std::nullopt;
  const auto bounded = [](std::int64_t n) { return static_cast<int>(std::clamp<std::int64_t>(n, 1, 1000)); };
  return bridge::PtySize{bounded(**cols), bounded(**rows)};
}

// One message of the client. What is not understood is ignored: pongs come in three shapes.
task<void> take(ShellService::SessionPtr s, std::string text) {
  const auto body = json::parse(text, {.max_bytes = http::kMaxWebSocketMessage});
  if (!body || !body->is_object()) co_return fail(Code::invalid_argument, "a message must be a JSON object");
  const auto type = json::get_string(*body, "type");
  const std::string kind = type && *type ? **type : "";
  if (kind == "resize") {
    if (const auto size = size_of(*body)) s->resize(*size);
  } else if (kind == "input") {
    auto data = json::get_string(*body, "data");
    if (!data || !*data) co_return fail(Code::invalid_argument, "input needs a text in data");
    std::string input = std::move(**data);
    co_return co_await ShellSession::type(s, std::move(input));
  }
  co_return Status{};
}

task<void> take_input(http::WebSocket socket, ShellService::SessionPtr s) {
  while (true) {
    CO_TRY_ASSIGN(std::optional<std::string> text, co_await socket.receive());
    if (!text) co_return Status{};
    auto taken = co_await take(s, std::move(*text));
    if (taken) continue;
    std::string error = message("error", taken.error().text());
    CO_TRY(co_await socket.send(std::move(error)));
  }
}

task<void> refuse(http::WebSocket socket, std::string why) {
  std::string error = message("error", why);
  CO_TRY(co_await socket.send(std::move(error)));
  co_return co_await socket.close(1008, std::move(why));
}

}  // namespace

task<void> shell_ws(Call call, http::WebSocket socket) {
  ShellService& service = call.services.workspace->shell;
  const std::string wanted(call.request.query_value("session_id").value_or(""));
  ShellService::SessionPtr s;
  if (wanted.empty()) {
    ShellService::CreateParams params{.implicit = true, .for_person = true};
    params.size = {.cols = 80, .rows = 24};
    auto made = co_await service.create(std::move(params));
    if (!made) co_return co_await refuse(socket, made.error().text());
    s = std::move(*made);
  } else {
    s = service.find(wanted);
    if (!s) co_return co_await refuse(socket, "Session not found");
  }
  s->touch();
  const services::Counted<int> attached(s->attached);
  std::string id = message("session_id", s->id);
  CO_TRY(co_await socket.send(std::move(id)));
  std::string ready = message("ready", "Terminal ready");
  CO_TRY(co_await socket.send(std::move(ready)));

  const std::uint64_t end = s->screen().end();
  const std::uint64_t from = end > kReplayBytes ? end - kReplayBytes : 0;
  using asio::experimental::awaitable_operators::operator||;
  task<void> output = send_output(socket, s, from);
  task<void> input = take_input(socket, s);
  auto either = std::move(output) || std::move(input);
  (void)co_await std::move(either);  // however it ended, the client is gone
  s->touch();
  co_return Status{};
}

}  // namespace caisson::routes
