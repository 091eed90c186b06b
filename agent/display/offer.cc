#include "agent/display/selection.h"
#include "agent/display/utf8.h"

namespace caisson::display {
namespace {

// Below what a request may hold. Xvnc takes no text in parts for its viewers, so what fits is sent whole.
constexpr std::size_t kWhole = 240 * 1024;
constexpr std::size_t kPart = 64 * 1024;
constexpr std::size_t kMostTransfers = 16;
constexpr std::int64_t kPartWithinUs = 5'000'000;  // from one part to the taking of the next

}  // namespace

Task<Result<SelectionNames>> SelectionNames::intern(Server& server) {
  SelectionNames names;
  struct Name {
    const char* name;
    std::uint32_t* atom;
  };
  const Name all[] = {{"CLIPBOARD", &names.clipboard},
                      {"UTF8_STRING", &names.utf8_string},
                      {"TEXT", &names.text},
                      {"text/plain", &names.text_plain},
                      {"text/plain;charset=utf-8", &names.text_plain_utf8},
                      {"TARGETS", &names.targets},
                      {"TIMESTAMP", &names.timestamp},
                      {"INCR", &names.incr},
                      {"CAISSON_TIME", &names.time},
                      {"CAISSON_SELECTION_0", &names.slots[0]},
                      {"CAISSON_SELECTION_1", &names.slots[1]},
                      {"CAISSON_SELECTION_2", &names.slots[2]},
                      {"CAISSON_SELECTION_3", &names.slots[3]}};
  for (const Name& one : all) {
    CO_TRY_ASSIGN(*one.atom, co_await server.atom(one.name));
  }
  co_return names;
}

Offer::~Offer() {
  for (const auto& [key, transfer] : transfers_) server_.link().loop().cancel(transfer.timer);
}

Task<Status> Offer::begin(std::shared_ptr<const std::string> text, std::uint32_t time, bool viewers) {
  // First, because requests may come before the answer that the clipboard is ours.
  text_ = std::move(text);
  since_ = time;
  viewers_ = viewers;
  xcb_set_selection_owner_request_t own{};
  own.owner = window_;
  own.selection = names_.clipboard;
  own.time = time;
  server_.link().send(core_request(XCB_SET_SELECTION_OWNER, own));
  xcb_get_selection_owner_request_t owner{};
  owner.selection = names_.clipboard;
  CO_TRY_ASSIGN(const std::string reply, co_await server_.link().ask(core_request(XCB_GET_SELECTION_OWNER, owner)));
  if (read_at<xcb_get_selection_owner_reply_t>(reply).owner == window_) co_return Status();
  text_.reset();
  co_return fail(Code::unavailable, "another program took the clipboard");
}

void Offer::end(std::uint32_t time) {
  if (!text_) return;
  text_.reset();
  xcb_set_selection_owner_request_t none{};
  none.selection = names_.clipboard;
  none.time = time;
  server_.link().send(core_request(XCB_SET_SELECTION_OWNER, none));
}

void Offer::on_event(std::string_view event) {
  switch (read_at<std::uint8_t>(event) & 0x7F) {
    case XCB_SELECTION_REQUEST:
      return on_request(read_at<xcb_selection_request_event_t>(event));
    case XCB_SELECTION_CLEAR: {
      const auto clear = read_at<xcb_selection_clear_event_t>(event);
      // One that is older than what we own now tells of the past. Times wrap around.
      const bool is_newer = static_cast<std::int32_t>(clear.time - since_) >= 0;
      if (clear.owner == window_ && clear.selection == names_.clipboard && is_newer) text_.reset();
      return;
    }
    case XCB_PROPERTY_NOTIFY: {
      const auto notice = read_at<xcb_property_notify_event_t>(event);
      if (notice.state == XCB_PROPERTY_DELETE) send_part({notice.window, notice.atom});
      return;
    }
    default:
      return;
  }
}

void Offer::on_request(const xcb_selection_request_event_t& request) {
  // Whoever asks faster than the server reads from us gets no answer.
  if (request.owner != window_ || request.requestor == window_ || server_.link().is_busy()) return;
  const std::uint32_t property = request.property != 0 ? request.property : request.target;  // of old clients (ICCCM, 2.2)
  const bool is_ours =
      request.selection == names_.clipboard && text_ && (viewers_ || !server_.link().is_servers(request.requestor));
  const Given given = is_ours ? answer(request, property) : Given::nothing;
  xcb_selection_notify_event_t notice{};
  notice.response_type = XCB_SELECTION_NOTIFY;
  notice.time = request.time;
  notice.requestor = request.requestor;
  notice.selection = request.selection;
  notice.target = request.target;
  notice.property = given == Given::nothing ? 0 : property;
  std::string event(bytes_of(notice));
  event.resize(32);
  xcb_send_event_request_t send{};
  send.destination = request.requestor;
  event.copy(send.event, sizeof send.event);
  server_.link().send(core_request(XCB_SEND_EVENT, send));
  if (is_ours) asked_(request.requestor, given == Given::text);
}

Offer::Given Offer::answer(const xcb_selection_request_event_t& request, std::uint32_t property) {
  if (request.target == names_.targets) {
    const std::uint32_t targets[] = {names_.targets,         names_.timestamp,  names_.utf8_string, names_.text,
                                     names_.text_plain_utf8, names_.text_plain, XCB_ATOM_STRING};
    put(request.requestor, property, XCB_ATOM_ATOM, 32, bytes_of(targets));
    return Given::answer;
  }
  if (request.target == names_.timestamp) {
    put(request.requestor, property, XCB_ATOM_INTEGER, 32, bytes_of(since_));
    return Given::answer;
  }
  const bool is_text = request.target == names_.utf8_string || request.target == names_.text ||
                       request.target == names_.text_plain_utf8 || request.target == names_.text_plain ||
                       request.target == XCB_ATOM_STRING;
  return is_text ? give_text(request.requestor, property, request.target) : Given::nothing;
}

Offer::Given Offer::give_text(std::uint32_t requestor, std::uint32_t property, std::uint32_t target) {
  Transfer transfer{.text = text_, .type = target == names_.text ? names_.utf8_string : target};
  if (target == XCB_ATOM_STRING) transfer.latin1 = to_latin1(*text_);
  if (transfer.bytes().size() <= kWhole) {
    put(requestor, property, transfer.type, 8, transfer.bytes());
    return Given::text;
  }
  const Key key(requestor, property);
  forget(key);
  if (transfers_.size() >= kMostTransfers) return Given::nothing;
  const auto size = static_cast<std::uint32_t>(transfer.bytes().size());
  transfer.timer = server_.link().loop().after(kPartWithinUs, [this, key] { forget(key); });
  transfers_.emplace(key, std::move(transfer));
  watch(requestor, true);
  put(requestor, property, names_.incr, 32, bytes_of(size));
  return Given::answer;
}

void Offer::send_part(Key key) {
  const auto it = transfers_.find(key);
  if (it == transfers_.end()) return;
  Transfer& transfer = it->second;
  const std::string_view part = transfer.bytes().substr(transfer.sent, kPart);
  put(key.first, key.second, transfer.type, 8, part);
  transfer.sent += part.size();
  if (part.empty()) {
    forget(key);
    asked_(key.first, true);
    return;
  }
  server_.link().loop().cancel(transfer.timer);
  transfer.timer = server_.link().loop().after(kPartWithinUs, [this, key] { forget(key); });
}

void Offer::forget(Key key) {
  const auto gone = transfers_.extract(key);
  if (gone.empty()) return;
  server_.link().loop().cancel(gone.mapped().timer);
  const auto next = transfers_.lower_bound(Key(key.first, 0));
  if (next == transfers_.end() || next->first.first != key.first) watch(key.first, false);
}

void Offer::put(std::uint32_t window, std::uint32_t property, std::uint32_t type, std::uint8_t format, std::string_view bytes) {
  xcb_change_property_request_t request{};
  request.mode = XCB_PROP_MODE_REPLACE;
  request.window = window;
  request.property = property;
  request.type = type;
  request.format = format;
  request.data_len = static_cast<std::uint32_t>(bytes.size() / (format / 8));
  server_.link().send(core_request(XCB_CHANGE_PROPERTY, request, bytes));
}

void Offer::watch(std::uint32_t window, bool on) {
  xcb_change_window_attributes_request_t request{};
  request.window = window;
  request.value_mask = XCB_CW_EVENT_MASK;
  const std::uint32_t mask = on ? XCB_EVENT_MASK_PROPERTY_CHANGE : 0;
  server_.link().send(core_request(XCB_CHANGE_WINDOW_ATTRIBUTES, request, bytes_of(mask)));
}

}  // namespace caisson::display
