#include "agent/display/keyboard.h"

#include <algorithm>

#include "agent/display/sleep.h"
#include "agent/display/xkb_wire.h"

namespace caisson::display {
namespace {

constexpr std::size_t kMostMap = 256 * 1024;  // bytes of a keyboard map
constexpr std::size_t kStrokesAtOnce = 64;    // then the server is waited for
// Since the last stroke on a spare key. A program on a busy host may read the map this late; later it finds no letter there.
constexpr std::int64_t kGiveBackAfterUs = 2'000'000;
constexpr std::int64_t kQuietUs = 1'000'000;  // without a new binding: what was typed before has been read
constexpr std::uint16_t kCoreKeyboard = XCB_XKB_ID_USE_CORE_KBD;
constexpr Keysym kControlL = 0xFFE3, kSmallV = 'v';
constexpr Keysym kPasting[] = {'v', 'V', 0xFF63, 0xFF9E, 0x1008FF6D};  // Insert, that of the keypad, Paste

}  // namespace

Keyboard::~Keyboard() {
  Loop& loop = server_.link().loop();
  loop.cancel(spares_timer_);
  loop.cancel(quiet_timer_);
  for (const auto& [keysym, held] : held_) loop.cancel(held.timer);
}

Task<Status> Keyboard::start() {
  xcb_xkb_select_events_request_t events{};
  events.deviceSpec = kCoreKeyboard;
  events.affectWhich = XCB_XKB_EVENT_TYPE_MAP_NOTIFY;
  events.selectAll = XCB_XKB_EVENT_TYPE_MAP_NOTIFY;
  events.affectMap = XCB_XKB_MAP_PART_KEY_SYMS;
  events.map = XCB_XKB_MAP_PART_KEY_SYMS;
  server_.link().send(extension_request(server_.extensions().xkb, XCB_XKB_SELECT_EVENTS, events));
  CO_TRY(co_await read_map());
  spare_ = keymap_.spare();
  for (const std::uint8_t keycode : keymap_.multimedia()) {
    bind({.keycode = keycode, .keysym = 0});
    spare_.push_back(keycode);
  }
  co_return Status();
}

void Keyboard::on_event(std::string_view event) {
  const auto notice = read_at<xcb_xkb_map_notify_event_t>(event);
  if (notice.response_type != server_.extensions().xkb_event || notice.xkbType != XCB_XKB_MAP_NOTIFY) return;
  Loop& loop = server_.link().loop();
  loop.cancel(quiet_timer_);
  quiet_timer_ = loop.after(kQuietUs, [this] { wanted_(); });
}

Task<Status> Keyboard::tidy() {
  CO_TRY(server_.link().ready());
  CO_TRY(co_await read_map());
  std::vector<std::uint8_t> used;
  for (const std::uint8_t keycode : spare_)
    if (keymap_.has_keysym(keycode) && !bound_.contains(keycode) && !is_held(keycode)) used.push_back(keycode);
  if (used.size() * 2 <= spare_.size()) co_return Status();
  for (const std::uint8_t keycode : used) bind({.keycode = keycode, .keysym = 0});
  co_return Status();
}

bool Keyboard::is_held(std::uint8_t keycode) const {
  return std::ranges::any_of(held_, [keycode](const auto& held) { return held.second.keycode == keycode; });
}

Task<Status> Keyboard::read_map() {
  Link& link = server_.link();
  link.loop().cancel(spares_timer_);  // until rest(): no key changes while it is used
  const std::uint8_t xkb = server_.extensions().xkb;
  xcb_xkb_get_map_request_t map{};
  map.deviceSpec = kCoreKeyboard;
  map.full = XCB_XKB_MAP_PART_KEY_TYPES | XCB_XKB_MAP_PART_KEY_SYMS;
  xcb_xkb_get_state_request_t state{};
  state.deviceSpec = kCoreKeyboard;
  const xcb_get_modifier_mapping_request_t modifiers{};
  Link::Answer map_answer = link.ask(extension_request(xkb, XCB_XKB_GET_MAP, map), kMostMap);
  Link::Answer modifier_answer = link.ask(core_request(XCB_GET_MODIFIER_MAPPING, modifiers));
  Link::Answer state_answer = link.ask(extension_request(xkb, XCB_XKB_GET_STATE, state));
  CO_TRY_ASSIGN(const std::string map_reply, co_await map_answer);
  CO_TRY_ASSIGN(const std::string modifier_reply, co_await modifier_answer);
  CO_TRY_ASSIGN(const std::string state_reply, co_await state_answer);
  CO_TRY_ASSIGN(keymap_, Keymap::parse(map_reply, modifier_reply));
  const auto now = read_at<xcb_xkb_get_state_reply_t>(state_reply);
  group_ = now.group & 3;
  locked_ = now.lockedMods;
  co_return Status();
}

// In the order of Keymap::spare, without keys that are held. Those that have a letter come last: a program may still have to read
// what was typed on them.
std::vector<std::uint8_t> Keyboard::free_spares() const {
  std::vector<std::uint8_t> spare = keymap_.spare(), out;
  for (const auto& [keycode, keysym] : bound_)
    if (std::ranges::find(spare, keycode) == spare.end()) spare.push_back(keycode);
  for (const bool lettered : {false, true})
    for (const std::uint8_t code : spare)
      if (!is_held(code) && (bound_.contains(code) || keymap_.has_keysym(code)) == lettered) out.push_back(code);
  return out;
}

void Keyboard::bind(Binding binding) {
  xcb_change_keyboard_mapping_request_t request{};
  request.keycode_count = 1;
  request.first_keycode = binding.keycode;
  // Both levels: from one letter alone the server makes a key of two, whose first is the small letter.
  request.keysyms_per_keycode = 2;
  const Keysym keysyms[] = {binding.keysym, binding.keysym};
  server_.link().send(core_request(XCB_CHANGE_KEYBOARD_MAPPING, request, bytes_of(keysyms)));
  if (binding.keysym == 0) bound_.erase(binding.keycode);
  else bound_[binding.keycode] = binding.keysym;
}

void Keyboard::release_spares() {
  const std::map<std::uint8_t, Keysym> bound = bound_;
  for (const auto& [keycode, keysym] : bound)
    if (!is_held(keycode)) bind({.keycode = keycode, .keysym = 0});
}

void Keyboard::rest() {
  Loop& loop = server_.link().loop();
  loop.cancel(spares_timer_);
  if (!bound_.empty()) spares_timer_ = loop.after(kGiveBackAfterUs, [this] { release_spares(); });
}

void Keyboard::press_modifiers(std::uint8_t modifiers, bool down) {
  for (unsigned bit = 1; bit < 256; bit <<= 1)
    if ((modifiers & bit) != 0) server_.key(keymap_.modifier_key(static_cast<std::uint8_t>(bit)), down);
}

void Keyboard::strike(Stroke stroke) {
  press_modifiers(stroke.modifiers, true);
  server_.key(stroke.keycode, true);
  server_.key(stroke.keycode, false);
  press_modifiers(stroke.modifiers, false);
}

Task<Result<Stroke>> Keyboard::stroke_for(Keysym keysym) {
  if (const auto found = keymap_.find(keysym, group_, locked_); found) {
    if (bound_.contains(found->keycode)) spares_used_us_ = sys::monotonic_us();
    co_return *found;
  }
  const std::vector<std::uint8_t> spare = free_spares();
  // One that is not bound yet needs no time to be forgotten.
  auto chosen = std::ranges::find_if(spare, [this](std::uint8_t code) { return !bound_.contains(code); });
  if (chosen == spare.end()) {
    if (spare.empty()) co_return fail(Code::unavailable, "no key is spare to be bound to a key that the layout lacks");
    chosen = spare.begin();
    co_await Sleep(server_.link().loop(), spares_used_us_ + kRebindAfterUs);
  }
  Binding binding;
  binding.keycode = *chosen;
  binding.keysym = keysym;
  bind(binding);
  spares_used_us_ = sys::monotonic_us();
  Stroke stroke;
  stroke.keycode = *chosen;
  co_return stroke;
}

Task<Status> Keyboard::chord_of(std::vector<Keysym> keysyms) {
  CO_TRY(server_.link().ready());
  CO_TRY(co_await read_map());
  std::vector<Stroke> strokes;
  for (const Keysym keysym : keysyms) {
    CO_TRY_ASSIGN(const Stroke stroke, co_await stroke_for(keysym));
    strokes.push_back(stroke);
  }
  for (const Stroke& stroke : strokes) {
    press_modifiers(stroke.modifiers, true);
    server_.key(stroke.keycode, true);
    press_modifiers(stroke.modifiers, false);
  }
  for (auto stroke = strokes.rbegin(); stroke != strokes.rend(); ++stroke) server_.key(stroke->keycode, false);
  if (!bound_.empty()) spares_used_us_ = sys::monotonic_us();
  CO_TRY(co_await server_.link().sync());
  co_return Status();
}

Task<Status> Keyboard::press(std::string name) {
  std::vector<std::string> one(1, name);
  return chord(std::move(one));
}

Task<Status> Keyboard::chord(std::vector<std::string> names) {
  std::vector<Keysym> keysyms;
  for (const std::string& name : names) {
    CO_TRY_ASSIGN(const Keysym keysym, key_named(name));
    keysyms.push_back(keysym);
  }
  co_return co_await chord_of(std::move(keysyms));
}

bool Keyboard::may_paste(const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [](const std::string& name) {
    const auto keysym = key_named(name);
    return keysym && std::ranges::find(kPasting, *keysym) != std::end(kPasting);
  });
}

Task<Status> Keyboard::paste() {
  std::vector<Keysym> keysyms;
  keysyms.push_back(kControlL);
  keysyms.push_back(kSmallV);
  return chord_of(std::move(keysyms));
}

void Keyboard::hold(Keysym keysym, std::uint8_t keycode) {
  Held& held = held_[keysym];
  server_.link().loop().cancel(held.timer);
  held.keycode = keycode;
  held.timer = server_.link().loop().after(hold_us_, [this, keysym] {
    release(keysym);
    rest();
  });
}

void Keyboard::release(Keysym keysym) {
  const auto held = held_.extract(keysym);
  if (held.empty()) return;
  server_.link().loop().cancel(held.mapped().timer);
  server_.key(held.mapped().keycode, false);
  if (bound_.contains(held.mapped().keycode)) spares_used_us_ = sys::monotonic_us();
}

Task<Status> Keyboard::down(std::string name) {
  CO_TRY_ASSIGN(const Keysym keysym, key_named(name));
  CO_TRY(server_.link().ready());
  CO_TRY(co_await read_map());
  CO_TRY_ASSIGN(const Stroke stroke, co_await stroke_for(keysym));
  press_modifiers(stroke.modifiers, true);
  server_.key(stroke.keycode, true);
  press_modifiers(stroke.modifiers, false);
  hold(keysym, stroke.keycode);
  CO_TRY(co_await server_.link().sync());
  co_return Status();
}

Task<Status> Keyboard::up(std::string name) {
  CO_TRY_ASSIGN(const Keysym keysym, key_named(name));
  CO_TRY(server_.link().ready());
  if (held_.contains(keysym)) {
    release(keysym);
  } else {
    // A viewer may hold it; of a key that nobody holds the server takes no notice.
    CO_TRY(co_await read_map());
    if (const auto keycode = keymap_.key_with(keysym)) server_.key(*keycode, false);
  }
  CO_TRY(co_await server_.link().sync());
  co_return Status();
}

Task<Status> Keyboard::type(std::u32string text) {
  Link& link = server_.link();
  CO_TRY(link.ready());
  CO_TRY(co_await read_map());
  const std::uint8_t caps = locked_ & kLock;
  const std::vector<std::uint8_t> spare = free_spares();
  const auto rest = static_cast<std::uint8_t>(locked_ & ~kLock);
  CO_TRY_ASSIGN(const std::vector<TypingBatch> batches, plan_typing(text, keymap_, group_, rest, spare));
  // Caps Lock would change letters on spare keys as well, whose types do not name it: it is off while the text is typed.
  xcb_xkb_latch_lock_state_request_t lock{};
  lock.deviceSpec = kCoreKeyboard;
  lock.affectModLocks = caps;
  if (caps != 0) link.send(extension_request(server_.extensions().xkb, XCB_XKB_LATCH_LOCK_STATE, lock));
  Status done;
  for (const TypingBatch& batch : batches) {
    if (!batch.bindings.empty() && !bound_.empty()) co_await Sleep(link.loop(), spares_used_us_ + kRebindAfterUs);
    for (const Binding& binding : batch.bindings) bind(binding);
    for (std::size_t i = 0; done && i < batch.strokes.size(); ++i) {
      strike(batch.strokes[i]);
      if (i % kStrokesAtOnce + 1 < kStrokesAtOnce && i + 1 < batch.strokes.size()) continue;
      const auto synced = co_await link.sync();
      if (!synced) done = std::unexpected(synced.error());
    }
    if (!batch.bindings.empty()) spares_used_us_ = sys::monotonic_us();
    if (!done) break;
  }
  lock.modLocks = caps;
  if (caps != 0) link.send(extension_request(server_.extensions().xkb, XCB_XKB_LATCH_LOCK_STATE, lock));
  co_return done;
}

void Keyboard::let_go() {
  while (!held_.empty()) release(held_.begin()->first);
  release_spares();
}

}  // namespace caisson::display
