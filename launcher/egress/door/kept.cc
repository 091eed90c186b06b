#include "launcher/egress/door/kept.h"

#include <array>
#include <cerrno>

namespace caisson::egress {

void Kept::keep(One one) {
  if (ones_.size() >= kMost) (void)take_out(ones_.begin());
  if (total_ >= most_total_) return;
  one.since_us = poll_.now_us();
  ones_.push_back(std::move(one));
  ++total_;
  if (!timer_.is_set()) timer_.set(poll_.now_us() + kKeepUs);
}

// What the server says unasked, its end above all, makes the connection useless for a request.
std::optional<Kept::One> Kept::take(const Host& host, std::uint16_t port, const std::shared_ptr<const List>& by) {
  for (auto it = ones_.end(); it != ones_.begin();) {
    --it;
    if (it->host != host || it->port != port) continue;
    const auto next = std::next(it);
    One one = take_out(it);
    it = next;
    std::array<char, 1> byte;
    const bool silent = one.stream->peek(byte) < 0 && errno == EAGAIN;
    if (silent && one.by == by) return one;
  }
  return std::nullopt;
}

Kept::One Kept::take_out(std::list<One>::iterator which) {
  One one = std::move(*which);
  ones_.erase(which);
  --total_;
  return one;
}

void Kept::sweep() {
  while (!ones_.empty() && ones_.front().since_us + kKeepUs <= poll_.now_us()) (void)take_out(ones_.begin());
  if (!ones_.empty()) timer_.set(ones_.front().since_us + kKeepUs);
}

}  // namespace caisson::egress
