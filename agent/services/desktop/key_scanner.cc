#include "agent/services/desktop/key_scanner.h"

#include <algorithm>

#include "agent/services/desktop/rfb_messages.h"

namespace caisson::services {
namespace {

// Keysyms from 0xFF00 on are of function keys and modifiers (X11/keysymdef.h); those above 0x1000000 are characters of Unicode.
bool is_everywhere(std::uint32_t keysym) { return keysym < 0x7F || (keysym >= 0xFF00 && keysym <= 0xFFFF); }

}  // namespace

void KeyScanner::begin(State state, std::size_t need) {
  state_ = state;
  need_ = need;
  held_.clear();
}

void KeyScanner::take_head(std::vector<std::uint32_t>& keys) {
  const std::uint8_t type = rfb::byte(held_, 0);
  if (type == rfb::kKey || type == rfb::kQemu) {
    const std::uint32_t keysym = rfb::u32(held_, 4);
    const bool down = rfb::byte(held_, type == rfb::kKey ? 1 : 3) != 0;
    if (type == rfb::kQemu && rfb::byte(held_, 1) != 0) return begin(State::lost, 1);
    if (down && !is_everywhere(keysym) && keys.size() < kMostKeys) keys.push_back(keysym);
  }
  left_ = rfb::bytes_behind(held_);
  if (type == rfb::kPointer && long_pointer_ && (rfb::byte(held_, 1) & 0x80) != 0) left_ = 1;
  if (type == rfb::kSetEncodings) long_pointer_ = false;
  const bool encodings = type == rfb::kSetEncodings && left_ > 0;
  begin(left_ == 0 ? State::type : encodings ? State::encodings : State::rest, encodings ? rfb::kEncodingBytes : 1);
}

void KeyScanner::take(std::vector<std::uint32_t>& keys) {
  switch (state_) {
    case State::version:
      return held_ == rfb::kVersion ? begin(State::security, 1) : begin(State::lost, 1);
    case State::security:
      return rfb::byte(held_, 0) == 1 ? begin(State::init, 1) : begin(State::lost, 1);
    case State::init:
      return begin(State::type, 1);
    case State::type:
      if (const rfb::Row* const row = rfb::row_of(rfb::byte(held_, 0)); row == nullptr) return begin(State::lost, 1);
      else need_ = row->head;
      state_ = State::head;
      return;
    case State::head:
      return take_head(keys);
    case State::encodings:
      long_pointer_ = long_pointer_ || static_cast<std::int32_t>(rfb::u32(held_, 0)) == rfb::kExtendedMouseButtons;
      left_ -= rfb::kEncodingBytes;
      return left_ > 0 ? begin(State::encodings, rfb::kEncodingBytes) : begin(State::type, 1);
    case State::rest:
    case State::lost:
      return;
  }
}

std::vector<std::uint32_t> KeyScanner::scan(std::string_view bytes) {
  std::vector<std::uint32_t> keys;
  while (!bytes.empty() && state_ != State::lost) {
    if (state_ == State::rest) {
      const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      bytes.remove_prefix(size);
      left_ -= size;
      if (left_ == 0) begin(State::type, 1);
      continue;
    }
    const std::size_t size = std::min(need_ - held_.size(), bytes.size());
    held_ += bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (held_.size() == need_) take(keys);
  }
  return keys;
}

}  // namespace caisson::services
