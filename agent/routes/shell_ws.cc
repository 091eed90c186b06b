#include "agent/routes/shell_ws.h"

#include <charconv>

#include "agent/http/limits.h"
#include "agent/routes/coding.h"
#include "agent/services/common/counted.h"
#include "agent/services/common/text.h"
#include "agent/services/shell/shell_service.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes {
namespace {

using services::ShellService;
using services::ShellSession;

constexpr double kPingSeconds = 30;
constexpr std::size_t kPieceBytes = 32 * 1024;
constexpr std::size_t kReplayBytes = 64 * 1024;

constexpr std::uint64_t kMostOffset = std::uint64_t{1} << 53;  // the largest that JSON clients read exactly
constexpr std::string_view kReadOnly = "this terminal is read-only";

json::Value message(std::string_view type, json::Value data) { return {{"type", type}, {"data", std::move(data)}}; }

// One connection.
struct View {
  ShellService::SessionPtr session;
  http::WebSocket socket;
  services::Viewers::ViewerPtr viewer;
  bool flow = false, readonly = false, hears_of_gaps = false;
  bool left = false;  // by a closing handshake
  bridge::PtySize told_size{};
};
using ViewPtr = std::shared_ptr<View>;

task<void> send(ViewPtr view, json::Value value) {
  std::string text = json::dump(value);
  co_return co_await view->socket.send(std::move(text));
}

bool same(bridge::PtySize a, bridge::PtySize b) { return a.cols == b.cols && a.rows == b.rows; }

// The first character that begins at `offset` or after it: where output was dropped, one may have been cut.
std::uint64_t character_from(const services::OutputBuffer& screen, std::uint64_t offset) {
  const std::string bytes = screen.read(offset, 3);
  std::size_t skip = 0;
  while (skip < bytes.size() && (static_cast<unsigned char>(bytes[skip]) & 0xC0) == 0x80) ++skip;
  return std::max(offset, screen.begin()) + skip;
}

json::Value gap(std::uint64_t from, std::uint64_t to) { return message("gap", {{"from", from}, {"to", to}}); }

// The next message of output, and where it ends.
struct Piece {
  json::Value message;
  std::uint64_t end = 0;
};
std::optional<Piece> next_piece(const View& view, bool over) {
  const std::uint64_t at = view.viewer->sent;
  const std::size_t most = view.flow ? std::min<std::size_t>(view.viewer->allowance(), kPieceBytes) : kPieceBytes;
  if (most == 0) return std::nullopt;
  std::string bytes = view.session->screen().read(at, most);
  const bool all = over && at + bytes.size() == view.session->screen().end();  // no rest of a character will come
  if (!all) bytes.resize(bytes.size() - services::incomplete_tail(bytes));
  if (bytes.empty()) return std::nullopt;
  Piece piece{message("output", services::to_utf8(bytes)), at + bytes.size()};
  if (view.flow) piece.message["offset"] = piece.end;
  return piece;
}

// Sends the screen's output from where the viewer is, and pings, until the session ends or the client is gone. It closes the
// connection itself: its return cancels the concurrent read, and Beast cannot close a stream whose read was cancelled.
task<void> send_output(ViewPtr view) {
  const ShellService::SessionPtr s = view->session;
  services::Viewers::Viewer& viewer = *view->viewer;
  auto next_ping = bridge::deadline_after(kPingSeconds);
  std::optional<bridge::Clock::time_point> over_since;
  while (true) {
    const bool takes = !view->flow || viewer.allowance() > 0;
    if (const std::uint64_t from = viewer.sent; takes && from < s->screen().begin()) {
      viewer.skip_to(character_from(s->screen(), s->screen().begin()));
      if (view->hears_of_gaps) CO_TRY(co_await send(view, gap(from, viewer.sent)));
      continue;
    }
    if (view->flow && !same(view->told_size, s->size())) {
      view->told_size = s->size();
      json::Value size = message("size", {{"cols", view->told_size.cols}, {"rows", view->told_size.rows}});
      CO_TRY(co_await send(view, std::move(size)));
    }
    const bool over = s->closed() || (s->for_person && !s->alive());
    if (auto piece = next_piece(*view, over)) {
      viewer.sent = piece->end;
      CO_TRY(co_await send(view, std::move(piece->message)));
      continue;
    }
    if (over && !over_since) over_since = bridge::Clock::now();
    // What the client has not acknowledged yet is in its way, but not for ever.
    const bool all_sent = viewer.sent == s->screen().end();
    if (over && (all_sent || bridge::Clock::now() - *over_since >= services::Viewers::kPatience))
      co_return co_await view->socket.close(1000, "the shell has ended");
    if (co_await s->changed.wait_until(next_ping) || bridge::Clock::now() < next_ping) continue;
    next_ping = bridge::deadline_after(kPingSeconds);
    json::Value ping{{"type", "ping"}, {"timestamp", sys::realtime_ns() / 1'000'000}};
    CO_TRY(co_await send(view, std::move(ping)));
  }
}

// A message's fields may be in data or beside type.
const json::Value& fields_of(const json::Value& body) {
  const auto data = body.find("data");
  return data != body.end() && data->is_object() ? *data : body;
}

std::optional<bridge::PtySize> size_of(const json::Value& body) {
  const auto cols = json::get_int(fields_of(body), "cols");
  const auto rows = json::get_int(fields_of(body), "rows");
  if (!cols || !*cols || !rows || !*rows) return std::nullopt;
  const auto bounded = [](std::int64_t n) { return static_cast<int>(std::clamp<std::int64_t>(n, 1, 1000)); };
  return bridge::PtySize{bounded(**cols), bounded(**rows)};
}

Status acknowledge(View& view, const json::Value& body) {
  const auto offset = json::get_int(fields_of(body), "offset");
  if (!offset || !*offset || **offset < 0) return fail(Code::invalid_argument, "ack needs an offset");
  view.viewer->acknowledge(static_cast<std::uint64_t>(**offset));
  view.session->changed.notify_all();
  return {};
}

// Handles one message of the client. Unknown messages are ignored: pongs come in three shapes.
task<void> take(ViewPtr view, std::string text) {
  const auto body = json::parse(text, {.max_bytes = http::Limits{}.websocket_message});
  if (!body || !body->is_object()) co_return fail(Code::invalid_argument, "a message must be a JSON object");
  const auto type = json::get_string(*body, "type");
  const std::string kind = type && *type ? **type : "";
  if (kind == "ack" && view->flow) co_return acknowledge(*view, *body);
  if (view->readonly && (kind == "input" || kind == "resize")) co_return fail(Code::permission_denied, std::string(kReadOnly));
  if (kind == "resize") {
    if (const auto size = size_of(*body)) view->session->resize(*size);
  } else if (kind == "input") {
    auto data = json::get_string(*body, "data");
    if (!data || !*data) co_return fail(Code::invalid_argument, "input needs a text in data");
    std::string input = std::move(**data);
    co_return co_await ShellSession::type(view->session, std::move(input));
  }
  co_return Status{};
}

task<void> take_input(ViewPtr view) {
  while (true) {
    CO_TRY_ASSIGN(std::optional<std::string> text, co_await view->socket.receive());
    if (!text) view->left = true;
    if (!text) co_return Status{};
    auto taken = co_await take(view, std::move(*text));
    if (taken) continue;
    json::Value error = message("error", taken.error().text());
    CO_TRY(co_await send(view, std::move(error)));
  }
}

task<void> refuse(http::WebSocket socket, std::string why) {
  std::string error = json::dump(message("error", why));
  CO_TRY(co_await socket.send(std::move(error)));
  co_return co_await socket.close(1008, std::move(why));
}

// Whatever is not plainly "no" switches it on: a link that was meant to be read-only must not be a full one for its spelling.
bool asks(const Call& call, std::string_view name) {
  const auto value = call.request.query_value(name);
  return value && *value != "0" && *value != "false";
}

// The offset in the query; nullopt if it is absent.
Result<std::optional<std::uint64_t>> offset_of(const Call& call) {
  const auto text = call.request.query_value("offset");
  if (!text || text->empty()) return std::nullopt;
  std::uint64_t offset = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), offset);
  if (error != std::errc() || end != text->data() + text->size() || offset > kMostOffset)
    return fail(Code::invalid_argument, "offset must be a number of bytes");
  return offset;
}

task<ShellService::SessionPtr> session_of(Call call, bool readonly) {
  ShellService& service = call.services.workspace->shell;
  const std::string wanted(call.request.query_value("session_id").value_or(""));
  if (!wanted.empty()) {
    if (auto found = service.find(wanted)) co_return found;
    co_return fail(Code::not_found, "Session not found");
  }
  if (readonly) co_return fail(Code::invalid_argument, "a read-only terminal needs session_id");
  const bridge::PtySize size{.cols = 80, .rows = 24};
  if (const auto start = call.request.query_value("start")) {
    std::string name(*start);
    co_return co_await start_coding(std::move(call), std::move(name), size);
  }
  ShellService::CreateParams params{.implicit = true, .for_person = true, .size = size};
  co_return co_await service.create(std::move(params));
}

// The three messages at the beginning, and where the output begins.
task<void> greet(ViewPtr view, std::optional<std::uint64_t> wanted) {
  const ShellService::SessionPtr s = view->session;
  json::Value id = message("session_id", s->id);
  CO_TRY(co_await send(view, std::move(id)));
  const std::uint64_t end = s->screen().end();
  const std::uint64_t history = end > kReplayBytes ? end - kReplayBytes : 0;
  const bool unknown = wanted && *wanted > end;
  std::uint64_t at = wanted && !unknown ? *wanted : std::max(history, s->screen().begin());
  if (!wanted && at > 0) at = character_from(s->screen(), at);
  view->viewer = s->viewers.join(at, view->flow && !view->readonly);
  json::Value ready = message("ready", "Terminal ready");
  if (view->flow) {
    view->told_size = s->size();
    ready["offset"] = at;
    ready["end"] = end;
    ready["window"] = services::Viewers::kWindowBytes;
    ready["readonly"] = view->readonly;
    ready["cols"] = view->told_size.cols;
    ready["rows"] = view->told_size.rows;
  }
  CO_TRY(co_await send(view, std::move(ready)));
  if (unknown) CO_TRY(co_await send(view, gap(*wanted, at)));
  co_return Status{};
}

// Takes the viewer out again, however the conversation ends.
struct Attendance {
  ViewPtr view;
  explicit Attendance(ViewPtr v) : view(std::move(v)) {}
  ~Attendance() {
    const ShellService::SessionPtr& s = view->session;
    if (view->viewer) s->viewers.leave(view->viewer, !view->left && !s->closed(), bridge::Clock::now());
  }
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;
};

task<void> converse(ViewPtr view, std::optional<std::uint64_t> offset) {
  const Attendance attendance(view);
  CO_TRY(co_await greet(view, offset));
  using asio::experimental::awaitable_operators::operator||;
  task<void> output = send_output(view);
  task<void> input = take_input(view);
  auto either = std::move(output) || std::move(input);
  (void)co_await std::move(either);  // however it ended, the client is gone
  co_return Status{};
}

}  // namespace

task<void> shell_ws(Call call, http::WebSocket socket) {
  const bool readonly = call.principal.bounds.terminal.has_value() || asks(call, "readonly");
  const auto offset = offset_of(call);
  if (!offset) co_return co_await refuse(socket, offset.error().text());
  auto found = co_await session_of(call, readonly);
  if (!found) co_return co_await refuse(socket, found.error().text());
  const ShellService::SessionPtr s = std::move(*found);
  s->touch();
  const services::Counted<int> attached(s->attached);
  const auto view = std::make_shared<View>(View{.session = s, .socket = socket});
  view->flow = asks(call, "flow");
  view->readonly = readonly;
  view->hears_of_gaps = view->flow || offset->has_value();
  const Status ended = co_await converse(view, *offset);
  s->changed.notify_all();
  s->touch();
  co_return ended;
}

}  // namespace caisson::routes
