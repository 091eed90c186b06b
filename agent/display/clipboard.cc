#include "agent/display/clipboard.h"

#include "agent/display/sleep.h"
#include "agent/frames/display_protocol.h"

namespace caisson::display {
namespace {

constexpr std::int64_t kFetchUs = 3'000'000;     // of a text that was asked for
constexpr std::int64_t kFormerUs = 1'000'000;    // of the text that a paste replaces
constexpr std::int64_t kTakenUs = 2'000'000;     // from Control and v to the taking of the text
constexpr std::int64_t kTransferUs = 5'000'000;  // more, for a text in parts
constexpr std::int64_t kByAnotherUs = 200'000;   // after another program than the focused one took it
constexpr std::int64_t kAnswerUs = 30'000;       // from the last request of the focused program to our answer
// From the last request of a program to the next: 0.6 s were seen of Chromium on a host with eight busy threads a processor.
constexpr std::int64_t kKeepUs = 1'000'000;
constexpr std::int64_t kKeepAtMostUs = 6'000'000;  // whatever programs ask
constexpr std::int64_t kTimeUs = 5'000'000;

}  // namespace

Task<Status> Clipboard::start() {
  CO_TRY_ASSIGN(names_, co_await SelectionNames::intern(server_));
  window_ = server_.link().new_id();
  xcb_create_window_request_t request{};
  request.wid = window_;
  request.parent = server_.root();
  request.width = 1;
  request.height = 1;
  request._class = XCB_WINDOW_CLASS_INPUT_ONLY;
  request.value_mask = XCB_CW_EVENT_MASK;
  const std::uint32_t mask = XCB_EVENT_MASK_PROPERTY_CHANGE;
  CO_TRY(co_await server_.link().check(core_request(XCB_CREATE_WINDOW, request, bytes_of(mask))));
  offer_ = std::make_unique<Offer>(server_, names_, window_,
                                   [this](std::uint32_t requestor, bool has_text) { on_asked(requestor, has_text); });
  fetch_ = std::make_unique<Fetch>(server_, names_, window_);
  co_return Status();
}

void Clipboard::on_event(std::string_view event) {
  if (offer_ == nullptr || fetch_ == nullptr) return;
  offer_->on_event(event);
  fetch_->on_event(event);
  if ((read_at<std::uint8_t>(event) & 0x7F) != XCB_PROPERTY_NOTIFY) return;
  const auto notice = read_at<xcb_property_notify_event_t>(event);
  if (notice.window == window_ && notice.atom == names_.time) time_.put(notice.time);
}

// From the notice of a property that is appended nothing to (ICCCM, 2.1).
Task<Result<std::uint32_t>> Clipboard::server_time() {
  time_.clear();
  xcb_change_property_request_t request{};
  request.mode = XCB_PROP_MODE_APPEND;
  request.window = window_;
  request.property = names_.time;
  request.type = XCB_ATOM_INTEGER;
  request.format = 8;
  server_.link().send(core_request(XCB_CHANGE_PROPERTY, request));
  const std::optional<std::uint32_t> time = co_await time_.next(sys::monotonic_us() + kTimeUs);
  if (!time) co_return fail(Code::timeout, "the X server did not answer in time");
  co_return *time;
}

Task<Status> Clipboard::offer(std::shared_ptr<const std::string> text, bool viewers) {
  CO_TRY_ASSIGN(const std::uint32_t time, co_await server_time());
  co_return co_await offer_->begin(std::move(text), time, viewers);
}

Task<Result<std::optional<std::string>>> Clipboard::fetch(std::int64_t limit_us) {
  const std::int64_t deadline_us = sys::monotonic_us() + limit_us;
  CO_TRY_ASSIGN(const std::uint32_t time, co_await server_time());
  co_return co_await fetch_->text(frames::kMostText, time, deadline_us);
}

Task<Result<std::string>> Clipboard::get() {
  const Turns::Turn turn = co_await turns_.take();
  CO_TRY(server_.link().ready());
  if (const Pasted* pasted = kept()) co_return pasted->former ? *pasted->former : std::string();
  if (offer_->text()) co_return *offer_->text();
  CO_TRY_ASSIGN(auto text, co_await fetch(kFetchUs));
  co_return text.value_or(std::string());
}

Task<Status> Clipboard::set(std::string text) {
  const Turns::Turn turn = co_await turns_.take();
  CO_TRY(server_.link().ready());
  (void)co_await quiet();
  pasted_.reset();
  co_return co_await offer(std::make_shared<const std::string>(std::move(text)));
}

Task<Result<std::uint32_t>> Clipboard::focused_client() {
  const xcb_get_input_focus_request_t request{};
  CO_TRY_ASSIGN(const std::string reply, co_await server_.link().ask(core_request(XCB_GET_INPUT_FOCUS, request)));
  co_return server_.link().owner(read_at<xcb_get_input_focus_reply_t>(reply).focus);
}

void Clipboard::on_asked(std::uint32_t requestor, bool has_text) {
  if (server_.link().is_servers(requestor)) return;  // Xvnc itself, for a viewer
  const bool is_focused = focused_ == 0 || server_.link().owner(requestor) == focused_;
  taken_ = taken_ || has_text;
  focused_took_ = focused_took_ || (has_text && is_focused);
  if (kept() != nullptr) keep();
  if (is_focused || has_text) asked_.put(true);
}

// What the focused program takes ends the wait; another that takes it may be the one that is typed into, or one that looks on.
Task<bool> Clipboard::wait_taken() {
  const std::int64_t last_us = sys::monotonic_us() + kTakenUs + kTransferUs;
  std::int64_t deadline_us = sys::monotonic_us() + kTakenUs;
  while (true) {
    if (co_await asked_.next(std::min(deadline_us, last_us))) {
      if (focused_took_) deadline_us = sys::monotonic_us() + kAnswerUs;
      else if (taken_) deadline_us = std::min(deadline_us, sys::monotonic_us() + kByAnotherUs);
      else deadline_us = std::max(deadline_us, sys::monotonic_us() + kKeepUs);  // it asks for the list of formats first
    } else if (offer_->is_sending() && sys::monotonic_us() < last_us) {
      deadline_us = last_us;
    } else {
      co_return taken_;
    }
  }
}

Task<Result<bool>> Clipboard::paste(std::string text, Keyboard& keyboard) {
  const Turns::Turn turn = co_await turns_.take();
  CO_TRY(server_.link().ready());
  const bool is_kept = co_await quiet();
  std::shared_ptr<const std::string> former = is_kept ? pasted_->former : offer_->text();
  if (!is_kept && former == nullptr) {
    auto fetched = co_await fetch(kFormerUs);
    if (fetched && *fetched) former = std::make_shared<const std::string>(std::move(**fetched));
  }
  pasted_.reset();
  const auto ours = std::make_shared<const std::string>(std::move(text));
  CO_TRY(co_await offer(ours, false));
  CO_TRY_ASSIGN(focused_, co_await focused_client());
  taken_ = focused_took_ = false;
  asked_.clear();
  const Status pressed = co_await keyboard.paste();
  const bool taken = pressed && co_await wait_taken();
  pasted_ = Pasted{.text = ours, .former = std::move(former), .last_us = sys::monotonic_us() + kKeepAtMostUs};
  if (taken) keep();
  else CO_TRY(co_await give_back());
  CO_TRY(pressed);
  co_return taken;
}

void Clipboard::keep() {
  Loop& loop = server_.link().loop();
  pasted_->until_us = std::min(sys::monotonic_us() + kKeepUs, pasted_->last_us);
  loop.cancel(keep_timer_);
  keep_timer_ = loop.after(pasted_->until_us - sys::monotonic_us(), wanted_);
}

// Whether a text that was pasted is in the clipboard, which nobody asks for any more.
Task<bool> Clipboard::quiet() {
  while (kept() != nullptr && sys::monotonic_us() < pasted_->until_us) co_await Sleep(server_.link().loop(), pasted_->until_us);
  server_.link().loop().cancel(keep_timer_);
  co_return kept() != nullptr;
}

Task<Status> Clipboard::give_back() {
  const bool is_there = kept() != nullptr;
  const std::optional<Pasted> over = std::exchange(pasted_, std::nullopt);
  if (!is_there) co_return Status();  // another program has it by now
  if (over->former != nullptr) co_return co_await offer(over->former);
  CO_TRY_ASSIGN(const std::uint32_t time, co_await server_time());
  offer_->end(time);
  co_return Status();
}

Task<Status> Clipboard::settle() {
  if (!pasted_) co_return Status();
  const Turns::Turn turn = co_await turns_.take();
  CO_TRY(server_.link().ready());
  (void)co_await quiet();
  co_return co_await give_back();
}

}  // namespace caisson::display
