#include "agent/display/worker.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

#include "agent/display/sleep.h"
#include "agent/display/utf8.h"

namespace caisson::display {
namespace {

using frames::Action;
using frames::DisplayOp;

constexpr std::size_t kReadAtOnce = 64 * 1024;

Task<Result<Answer>> refuse(Error error) { co_return std::unexpected(std::move(error)); }

Result<Answer> empty(Status status) {
  if (!status) return std::unexpected(std::move(status).error());
  return Answer();
}

}  // namespace

// Which function carries out which operation.
struct Operations {
  struct Row {
    DisplayOp op;
    Task<Result<Answer>> (Worker::*run)(frames::Frame);
  };
  static constexpr Row kAll[] = {
      {DisplayOp::info, &Worker::info},
      {DisplayOp::screenshot, &Worker::screenshot},
      {DisplayOp::action, &Worker::action},
      {DisplayOp::resize, &Worker::resize_screen},
      {DisplayOp::clipboard_get, &Worker::clipboard_get},
      {DisplayOp::clipboard_set, &Worker::clipboard_set},
  };
  static_assert(frames::covers_display_ops(kAll));
};

Worker::Worker(Server& server, bool shared_memory, std::int64_t hold_us, std::function<void(std::string)> over)
    : server_(server),
      loop_(server.link().loop()),
      screen_(server, shared_memory),
      mouse_(server, hold_us),
      keyboard_(server, hold_us,
                [this] {
                  if (!std::exchange(tidying_, true)) running_.push_back(tidy());
                }),
      clipboard_(server, [this] { running_.push_back(settle()); }),
      over_(std::move(over)),
      actions_(loop_),
      resizes_(loop_) {}

Task<Status> Worker::start() {
  CO_TRY(co_await keyboard_.start());
  co_return co_await clipboard_.start();
}

void Worker::on_event(std::string_view event) {
  keyboard_.on_event(event);
  clipboard_.on_event(event);
}

Status Worker::serve(int in, int out) {
  in_ = in;
  out_ = out;
  TRY(sys::set_nonblocking(in_, true));
  TRY(sys::set_nonblocking(out_, true));
  TRY(loop_.watch(in_, EPOLLIN, [this](std::uint32_t) { on_input(); }));
  return loop_.watch(out_, 0, [this](std::uint32_t events) {
    if ((events & EPOLLERR) != 0) return over_("");
    on_output();
  });
}

void Worker::on_input() {
  std::string bytes(kReadAtOnce, '\0');
  const ssize_t n = ::read(in_, bytes.data(), bytes.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return over_(n == 0 ? "" : "cannot read requests");
  unread_.append(bytes, 0, static_cast<std::size_t>(n));
  take_frames();
}

void Worker::take_frames() {
  std::string_view bytes = unread_;
  while (has_room()) {
    auto frame = decoder_.take(bytes);
    if (!frame) return over_(frame.error().what);
    if (!*frame) break;
    const auto id = json::get_int((*frame)->head, "id");
    if (!id || !*id || **id < 0) return over_("a head without an 'id'");
    running_.push_back(run(**id, std::move(**frame)));
  }
  unread_.erase(0, unread_.size() - bytes.size());
  // What waits in the pipe is the agent's; where answers are not read, no more requests are.
  if (reading_ != has_room()) {
    reading_ = !reading_;
    (void)loop_.rewatch(in_, reading_ ? EPOLLIN : 0);
  }
}

Task<bool> Worker::run(std::int64_t id, frames::Frame frame) {
  answer(id, co_await operate(std::move(frame)));
  sweep_soon();
  co_return true;
}

Task<bool> Worker::tidy() {
  const Turns::Turn turn = co_await actions_.take();
  (void)co_await keyboard_.tidy();  // fails with the connection alone, and then the program ends
  keyboard_.rest();
  tidying_ = false;
  sweep_soon();
  co_return true;
}

Task<bool> Worker::settle() {
  (void)co_await clipboard_.settle();  // as tidy()
  sweep_soon();
  co_return true;
}

// Not at once, for it would end the task that is running.
void Worker::sweep_soon() {
  loop_.cancel(sweep_);
  sweep_ = loop_.after(0, [this] { sweep(); });
}

void Worker::sweep() {
  std::erase_if(running_, [](const Task<bool>& task) { return task.done(); });
  if (!reading_) take_frames();
}

Task<Result<Answer>> Worker::operate(frames::Frame frame) {
  const auto name = json::get_string(frame.head, "op");
  const auto op = frames::display_op(name && *name ? **name : "");
  if (!op) return refuse(Error(Code::invalid_argument, "no operation " + quote(name && *name ? **name : "")));
  const frames::DisplayOpRow& row = frames::display_op_row(*op);
  if (*op != DisplayOp::action)
    if (const auto member = frames::unknown_member(*op, std::nullopt, frame.head))
      return refuse(Error(Code::invalid_argument, std::string(row.name) + " takes no member " + quote(*member)));
  if (!row.body && !frame.body.empty()) return refuse(Error(Code::invalid_argument, std::string(row.name) + " takes no text"));
  return (this->*Operations::kAll[static_cast<std::size_t>(*op)].run)(std::move(frame));
}

void Worker::answer(std::int64_t id, Result<Answer> result) {
  Answer sent;
  if (result) sent = std::move(*result);
  if (!result) {
    sent.head["error"]["code"] = code_name(result.error().code);
    sent.head["error"]["text"] = result.error().text();
  }
  sent.head["id"] = id;
  auto head = frames::encode_head(std::move(sent.head), sent.body.size());
  if (!head) return over_(head.error().what);
  out_bytes_ += head->size() + sent.body.size();
  answers_.push_back(std::move(*head));
  if (!sent.body.empty()) answers_.push_back(std::move(sent.body));
  on_output();
}

void Worker::on_output() {
  while (!answers_.empty()) {
    const std::string& first = answers_.front();
    const ssize_t n = ::write(out_, first.data() + written_, first.size() - written_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) return over_(errno == EPIPE ? "" : "cannot answer");
    if (n < 0) break;
    written_ += static_cast<std::size_t>(n);
    out_bytes_ -= static_cast<std::size_t>(n);
    if (written_ < first.size()) break;
    written_ = 0;
    answers_.pop_front();
  }
  if (writing_ != !answers_.empty()) {
    writing_ = !writing_;
    (void)loop_.rewatch(out_, writing_ ? EPOLLOUT : 0);
  }
  if (!reading_ && has_room()) sweep_soon();
}

Task<Result<Answer>> Worker::info(frames::Frame) {
  CO_TRY(server_.link().ready());
  CO_TRY_ASSIGN(const Size size, co_await server_.size());
  CO_TRY_ASSIGN(const Pointer pointer, co_await server_.pointer());
  CO_TRY_ASSIGN(const Modes modes, co_await read_modes(server_));
  json::Value sizes = json::Value::array();
  for (const Size& one : sizes_of(modes)) sizes.push_back(json::Value::array({one.width, one.height}));
  json::Value buttons = json::Value::array();
  if ((pointer.mask & XCB_BUTTON_MASK_1) != 0) buttons.push_back("left");
  if ((pointer.mask & XCB_BUTTON_MASK_2) != 0) buttons.push_back("middle");
  if ((pointer.mask & XCB_BUTTON_MASK_3) != 0) buttons.push_back("right");
  Answer out;
  out.head["width"] = size.width;
  out.head["height"] = size.height;
  out.head["sizes"] = std::move(sizes);
  out.head["x"] = pointer.at.x;
  out.head["y"] = pointer.at.y;
  out.head["buttons"] = std::move(buttons);
  co_return out;
}

Task<Result<Answer>> Worker::screenshot(frames::Frame frame) {
  ShotAsked asked;
  CO_TRY_ASSIGN(const auto format, json::get_string(frame.head, "format"));
  const std::string name = format.value_or("png");
  if (name != "png" && name != "jpeg") co_return fail(Code::invalid_argument, "'format' must be png or jpeg");
  asked.jpeg = name == "jpeg";
  CO_TRY_ASSIGN(const auto quality, integer_within(frame.head, "quality", 0, 100, asked.quality));
  asked.quality = static_cast<int>(quality);
  CO_TRY_ASSIGN(const auto cursor, json::get_bool(frame.head, "cursor"));
  asked.cursor = cursor.value_or(false);
  if (out_bytes_ >= frames::kMostImage) co_return fail(Code::limit, "answers wait to be read");
  CO_TRY_ASSIGN(Shot shot, co_await screen_.shoot(asked, frames::kMostImage));
  Answer out;
  out.head["width"] = shot.size.width;
  out.head["height"] = shot.size.height;
  out.body = std::move(shot.bytes);
  co_return out;
}

Task<Result<Answer>> Worker::action(frames::Frame frame) {
  CO_TRY_ASSIGN(ActionAsked asked, parse_action(frame.head, std::move(frame.body)));
  if (waiting_actions_ >= frames::kMostActions)
    co_return fail(Code::limit, "more than " + std::to_string(frames::kMostActions) + " actions wait");
  ++waiting_actions_;
  const Turns::Turn turn = co_await actions_.take();
  auto done = co_await act(std::move(asked));
  keyboard_.rest();
  --waiting_actions_;
  co_return done;
}

Task<Result<Answer>> Worker::act(ActionAsked asked) {
  const Point at = asked.at.value_or(Point());
  if (Keyboard::may_paste(asked.keys)) CO_TRY(co_await clipboard_.settle());
  switch (asked.action) {
    case Action::move_to:
      co_return empty(co_await mouse_.move(at));
    case Action::move_rel:
      co_return empty(co_await mouse_.move_by(at));
    case Action::click:
    case Action::right_click:
    case Action::double_click:
      co_return empty(co_await mouse_.click(asked.at, asked.button, asked.clicks));
    case Action::mouse_down:
      co_return empty(co_await mouse_.down(asked.button));
    case Action::mouse_up:
      co_return empty(co_await mouse_.up(asked.button));
    case Action::drag_to:
      co_return empty(co_await mouse_.drag(at));
    case Action::drag_rel:
      co_return empty(co_await mouse_.drag_by(at));
    case Action::scroll:
      co_return empty(co_await mouse_.scroll(asked.dx, asked.dy));
    case Action::press:
    case Action::hotkey:
      co_return empty(co_await keyboard_.chord(std::move(asked.keys)));
    case Action::key_down:
      co_return empty(co_await keyboard_.down(asked.keys.front()));
    case Action::key_up:
      co_return empty(co_await keyboard_.up(asked.keys.front()));
    case Action::wait:
      break;
    case Action::typing: {
      if (!asked.use_clipboard) co_return empty(co_await keyboard_.type(std::move(asked.typed)));
      CO_TRY_ASSIGN(const bool taken, co_await clipboard_.paste(std::move(asked.text), keyboard_));
      Answer out;
      out.head["taken"] = taken;
      co_return out;
    }
  }
  co_await Sleep(loop_, sys::monotonic_us() + asked.wait_us);
  co_return Answer();
}

Task<Result<Answer>> Worker::resize_screen(frames::Frame frame) {
  CO_TRY_ASSIGN(const auto width, json::get_int(frame.head, "width"));
  CO_TRY_ASSIGN(const auto height, json::get_int(frame.head, "height"));
  if (!frames::is_resolution(width.value_or(0), height.value_or(0)))
    co_return fail(Code::invalid_argument, "the screen does not take this size");
  Size wanted;
  wanted.width = static_cast<int>(*width);
  wanted.height = static_cast<int>(*height);
  const Turns::Turn turn = co_await resizes_.take();
  CO_TRY_ASSIGN(const Size size, co_await resize(server_, wanted));
  Answer out;
  out.head["width"] = size.width;
  out.head["height"] = size.height;
  co_return out;
}

Task<Result<Answer>> Worker::clipboard_get(frames::Frame) {
  CO_TRY_ASSIGN(std::string text, co_await clipboard_.get());
  Answer out;
  out.body = std::move(text);
  co_return out;
}

Task<Result<Answer>> Worker::clipboard_set(frames::Frame frame) {
  if (!is_utf8(frame.body)) co_return fail(Code::invalid_argument, "the text is not UTF-8");
  co_return empty(co_await clipboard_.set(std::move(frame.body)));
}

void Worker::let_go() {
  mouse_.let_go();
  keyboard_.let_go();
}

}  // namespace caisson::display
