#include "agent/frames/frame.h"

#include <algorithm>

namespace caisson::frames {
namespace {

constexpr std::size_t kReserved = 1024 * 1024;

std::unexpected<Error> broken(std::string what) { return fail(Code::protocol, std::move(what)); }

void move_front(std::string_view& from, std::string& to, std::size_t most) {
  const std::size_t n = std::min(from.size(), most);
  to.append(from.substr(0, n));
  from.remove_prefix(n);
}

}  // namespace

Result<std::string> encode_head(json::Value head, std::size_t body_bytes) {
  if (body_bytes > 0) head["bytes"] = body_bytes;
  std::string out(4, '\0');
  out += json::dump(head);
  const std::size_t size = out.size() - 4;
  if (size > Limits{}.head_bytes) return fail(Code::limit, "a message of " + std::to_string(size) + " bytes is too large");
  for (std::size_t i = 0; i < 4; ++i) out[i] = static_cast<char>((size >> (8 * i)) & 0xFF);
  return out;
}

Status Decoder::take_length(std::string_view& bytes) {
  while (length_have_ < length_.size() && !bytes.empty()) {
    length_[length_have_++] = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
  }
  if (length_have_ < length_.size()) return {};
  length_have_ = 0;
  wanted_ = 0;
  for (std::size_t i = 0; i < length_.size(); ++i) wanted_ |= static_cast<std::size_t>(length_[i]) << (8 * i);
  if (wanted_ > limits_.head_bytes) return fail(Code::limit, "a head of " + std::to_string(wanted_) + " bytes");
  if (wanted_ < 2) return broken("a head of " + std::to_string(wanted_) + " bytes");
  part_ = Part::head;
  return {};
}

Status Decoder::take_head(std::string_view& bytes) {
  move_front(bytes, text_, wanted_ - text_.size());
  if (text_.size() < wanted_) return {};
  auto parsed = json::parse(text_, {.max_bytes = limits_.head_bytes, .max_depth = 32, .max_values = limits_.head_values});
  text_ = std::string();
  if (!parsed) return broken("a head that is not JSON: " + parsed.error().what);
  if (!parsed->is_object()) return broken("a head that is not an object");
  auto size = json::get_int(*parsed, "bytes");
  const std::int64_t said = size ? size->value_or(0) : -1;
  if (said < 0 || static_cast<std::uint64_t>(said) > limits_.body_bytes)
    return fail(said < 0 ? Code::protocol : Code::limit,
                "a head whose 'bytes' is not a number from 0 to " + std::to_string(limits_.body_bytes));
  frame_.head = std::move(*parsed);
  wanted_ = static_cast<std::size_t>(size->value_or(0));
  frame_.body.reserve(std::min(wanted_, kReserved));
  part_ = Part::body;
  return {};
}

Result<std::optional<Frame>> Decoder::take(std::string_view& bytes) {
  if (part_ == Part::broken) return broken("nothing is read after a broken frame");
  Status step;
  if (part_ == Part::length) step = take_length(bytes);
  if (step && part_ == Part::head) step = take_head(bytes);
  if (!step) {
    part_ = Part::broken;
    return std::unexpected(std::move(step).error());
  }
  if (part_ != Part::body) return std::nullopt;
  move_front(bytes, frame_.body, wanted_ - frame_.body.size());
  if (frame_.body.size() < wanted_) return std::nullopt;
  part_ = Part::length;
  return std::exchange(frame_, Frame());
}

}  // namespace caisson::frames
