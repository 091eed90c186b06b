#include "agent/services/desktop/watcher_filter.h"

#include <algorithm>

namespace caisson::services {
namespace {

enum Message : std::uint8_t {
  kSetPixelFormat = 0,
  kSetEncodings = 2,
  kUpdateRequest = 3,
  kKey = 4,
  kPointer = 5,
  kCutText = 6,
  kContinuousUpdates = 150,
  kFence = 248,
  kXvp = 250,
  kSetDesktopSize = 251,
  kQemu = 255,
};

// The bytes of a message up to what tells its length; all of them where that is fixed.
struct Row {
  std::uint8_t type;
  std::size_t head;
  bool passes;
};
constexpr Row kRows[] = {
    {kSetPixelFormat, 20, true},
    {kSetEncodings, 4, true},
    {kUpdateRequest, 10, true},
    {kKey, 8, false},
    {kPointer, 6, false},
    {kCutText, 8, false},
    {kContinuousUpdates, 10, true},
    {kFence, 9, true},
    {kXvp, 4, false},
    {kSetDesktopSize, 8, false},
    {kQemu, 12, false},
};

// With the first of these, pointer messages have another length. The second one is what the clipboard's manners need.
constexpr std::int32_t kExtendedMouseButtons = -316;
constexpr std::uint32_t kExtendedClipboard = 0xC0A1E5CE;
constexpr std::size_t kMostFence = 64, kScreenBytes = 16;

std::uint8_t byte(std::string_view text, std::size_t at) { return static_cast<std::uint8_t>(text[at]); }
std::uint32_t u32(std::string_view text, std::size_t at) {
  return std::uint32_t{byte(text, at)} << 24 | std::uint32_t{byte(text, at + 1)} << 16 | std::uint32_t{byte(text, at + 2)} << 8 |
         byte(text, at + 3);
}
std::string u32_text(std::uint32_t value) {
  std::string out;
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(value >> shift & 0xff));
  return out;
}

// SetEncodings with the extended clipboard alone, and a cut text of that kind: the capability "notify" for text, of no size. A
// server that follows it announces what was copied and never sends it, for the request to send it is dropped.
std::string manners() {
  constexpr std::uint32_t kCaps = 1U << 24 | 1U << 27 | 1U;
  return std::string("\2\0\0\1", 4) + u32_text(kExtendedClipboard) + std::string("\6\0\0\0", 4) +
         u32_text(static_cast<std::uint32_t>(-8)) + u32_text(kCaps) + u32_text(0);
}

}  // namespace

void WatcherFilter::begin(State state, std::size_t need) {
  state_ = state;
  need_ = need;
  held_.clear();
}

Status WatcherFilter::take_type() {
  const std::uint8_t type = byte(held_, 0);
  const auto* const row = std::ranges::find(kRows, type, &Row::type);
  if (row == std::end(kRows)) return fail(Code::protocol, "RFB message type " + std::to_string(type) + " is unknown");
  state_ = State::head;
  need_ = row->head;
  passes_ = row->passes;
  return {};
}

// What is fixed of a message has come.
Status WatcherFilter::take_head(std::string& out) {
  const std::uint8_t type = byte(held_, 0);
  left_ = 0;
  switch (type) {
    case kSetEncodings: {
      // One more than the viewer names: without the extended clipboard the manners would end here.
      const std::size_t count = std::size_t{byte(held_, 2)} << 8 | byte(held_, 3);
      if (count == 0xffff) return fail(Code::protocol, "RFB: too many encodings");
      out += std::string("\2\0", 2) + static_cast<char>((count + 1) >> 8) + static_cast<char>((count + 1) & 0xff);
      out += u32_text(kExtendedClipboard);
      left_ = count;
      if (count > 0) begin(State::encodings, 4);
      else begin(State::type, 1);
      return {};
    }
    case kCutText: {  // a negative length is that of an extended one
      const auto length = static_cast<std::int32_t>(u32(held_, 4));
      left_ =
          length < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(std::int64_t{length}) : static_cast<std::uint64_t>(length);
      break;
    }
    case kFence:
      if (byte(held_, 8) > kMostFence) return fail(Code::protocol, "RFB: a fence is too long");
      left_ = byte(held_, 8);
      break;
    case kSetDesktopSize:
      left_ = byte(held_, 6) * kScreenBytes;
      break;
    case kQemu:
      if (byte(held_, 1) != 0) return fail(Code::protocol, "RFB: QEMU message is unknown");
      break;
    default:
      break;
  }
  if (passes_) out += held_;
  begin(left_ > 0 ? State::rest : State::type, 1);
  return {};
}

void WatcherFilter::take_encoding(std::string& out) {
  const bool mouse = static_cast<std::int32_t>(u32(held_, 0)) == kExtendedMouseButtons;
  out += mouse ? u32_text(kExtendedClipboard) : held_;
  if (--left_ > 0) begin(State::encodings, 4);
  else begin(State::type, 1);
}

Result<std::string> WatcherFilter::pass(std::string_view bytes) {
  std::string out;
  const auto broken = [this](std::string what) {
    state_ = State::broken;
    return fail(Code::protocol, std::move(what));
  };
  while (!bytes.empty()) {
    if (state_ == State::broken) return fail(Code::protocol, "RFB: the connection has ended");
    if (state_ == State::rest) {
      const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      if (passes_) out += bytes.substr(0, size);
      bytes.remove_prefix(size);
      left_ -= size;
      if (left_ == 0) begin(State::type, 1);
      continue;
    }
    const std::size_t size = std::min(need_ - held_.size(), bytes.size());
    held_ += bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (held_.size() < need_) break;
    switch (state_) {
      case State::version:  // earlier ones have another beginning
        if (held_ != "RFB 003.008\n") return broken("RFB version 3.8 is needed");
        out += held_;
        begin(State::security, 1);
        break;
      case State::security:
        if (byte(held_, 0) != 1) return broken("RFB security type None is needed: the connection is one of this server's");
        out += held_;
        begin(State::init, 1);
        break;
      case State::init:
        out.append("\1", 1).append(manners());  // the others stay connected
        begin(State::type, 1);
        break;
      case State::type:
        if (Status known = take_type(); !known) return broken(known.error().what);
        if (held_.size() < need_) break;
        [[fallthrough]];
      case State::head:
        if (Status taken = take_head(out); !taken) return broken(taken.error().what);
        break;
      case State::encodings:
        take_encoding(out);
        break;
      case State::rest:
      case State::broken:
        break;
    }
  }
  return out;
}

}  // namespace caisson::services
