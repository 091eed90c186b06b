#include "agent/display/selection.h"
#include "agent/display/utf8.h"

namespace caisson::display {
namespace {

constexpr std::size_t kHead = 32;

std::unexpected<Error> too_large(std::size_t most) {
  return fail(Code::limit, "the clipboard has more than " + std::to_string(most) + " bytes of text");
}
std::unexpected<Error> silent() { return fail(Code::timeout, "the program that has the clipboard did not answer in time"); }

}  // namespace

void Fetch::on_event(std::string_view event) {
  if (slot_ == 0) return;
  const std::uint8_t type = read_at<std::uint8_t>(event) & 0x7F;
  if (type == XCB_SELECTION_NOTIFY) {
    const auto notice = read_at<xcb_selection_notify_event_t>(event);
    if (notice.requestor == window_ && notice.selection == names_.clipboard && notice.target == target_ &&
        (notice.property == slot_ || notice.property == 0))
      notified_.put(notice.property != 0);
  } else if (type == XCB_PROPERTY_NOTIFY) {
    const auto notice = read_at<xcb_property_notify_event_t>(event);
    if (notice.window == window_ && notice.atom == slot_ && notice.state == XCB_PROPERTY_NEW_VALUE) written_.put(true);
  }
}

Task<Result<Fetch::Property>> Fetch::take_property(std::size_t most) {
  xcb_get_property_request_t request{};
  request._delete = 1;  // if all of it fits
  request.window = window_;
  request.property = slot_;
  request.long_length = static_cast<std::uint32_t>(most / 4 + 1);
  const std::size_t longest = kHead + (most / 4 + 1) * 4;
  CO_TRY_ASSIGN(const std::string reply, co_await server_.link().ask(core_request(XCB_GET_PROPERTY, request), longest));
  const auto head = read_at<xcb_get_property_reply_t>(reply);
  const std::size_t size = std::size_t{head.value_len} * (head.format / 8U);
  if (head.bytes_after > 0 || size > most) co_return too_large(most);
  if (size > reply.size() - kHead) co_return fail(Code::protocol, "the X server gives a property that is cut short");
  Property property;
  property.type = head.type;
  property.format = head.format;
  property.bytes = reply.substr(kHead, size);
  co_return property;
}

Task<Result<std::optional<std::string>>> Fetch::parts(std::size_t most, std::int64_t deadline_us) {
  std::string out;
  while (true) {
    // Each is announced before it is taken, and the next comes only after that.
    if (!co_await written_.next(deadline_us)) co_return silent();
    CO_TRY_ASSIGN(const Property part, co_await take_property(most));
    if (part.bytes.empty()) co_return std::optional(std::move(out));
    if (part.format != 8) co_return std::optional<std::string>();
    if (part.bytes.size() > most - out.size()) co_return too_large(most);
    out += part.bytes;
  }
}

Task<Result<std::optional<std::string>>> Fetch::as(std::uint32_t target, std::size_t most, std::uint32_t time,
                                                   std::int64_t deadline_us) {
  target_ = target;
  notified_.clear();
  xcb_convert_selection_request_t request{};
  request.requestor = window_;
  request.selection = names_.clipboard;
  request.target = target;
  request.property = slot_;
  request.time = time;
  server_.link().send(core_request(XCB_CONVERT_SELECTION, request));
  const std::optional<bool> has = co_await notified_.next(deadline_us);
  if (!has) co_return silent();
  if (!*has) co_return std::optional<std::string>();
  written_.clear();
  CO_TRY_ASSIGN(Property property, co_await take_property(most));
  if (property.type == names_.incr) {
    CO_TRY_ASSIGN(auto text, co_await parts(most, deadline_us));
    property.bytes = text.value_or(std::string());
    property.format = text ? 8 : 0;
  }
  if (property.format != 8) co_return std::optional<std::string>();
  co_return std::optional(std::move(property.bytes));
}

Task<Result<std::optional<std::string>>> Fetch::text(std::size_t most, std::uint32_t time, std::int64_t deadline_us) {
  // An answer that comes too late is for a property that nobody awaits any more.
  slot_ = names_.slots[fetches_++ % std::size(names_.slots)];
  auto text = co_await as(names_.utf8_string, most, time, deadline_us);
  if (text && *text && !is_utf8(**text)) text->reset();
  if (text && !*text) {
    text = co_await as(XCB_ATOM_STRING, most, time, deadline_us);
    if (text && *text) *text = from_latin1(**text);
    if (text && *text && (*text)->size() > most) text = too_large(most);
  }
  xcb_delete_property_request_t clean{};
  clean.window = window_;
  clean.property = slot_;
  server_.link().send(core_request(XCB_DELETE_PROPERTY, clean));
  slot_ = 0;
  co_return text;
}

}  // namespace caisson::display
