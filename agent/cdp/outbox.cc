#include "agent/cdp/outbox.h"

#include <algorithm>
#include <cerrno>

namespace caisson::cdp {
namespace {

constexpr char kNul[1] = {'\0'};

}  // namespace

std::size_t Outgoing::pieces(std::size_t from, std::span<iovec, kMaxPieces> out) const {
  std::size_t count = 0;
  const auto add = [&](std::string_view piece) {
    if (from >= piece.size()) {
      from -= piece.size();
      return;
    }
    piece.remove_prefix(std::exchange(from, 0));
    out[count++] = {const_cast<char*>(piece.data()), piece.size()};
  };
  const std::string_view body = body_.view();
  std::size_t at = 0;
  for (const Change& change : changes_) {
    add(body.substr(at, change.instead_of.begin - at));
    add(change.text);
    at = change.instead_of.end;
  }
  add(body.substr(at));
  add({kNul, 1});
  return count;
}

std::string Outgoing::text() const {
  std::array<iovec, kMaxPieces> parts;
  const std::size_t count = pieces(0, parts);
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  out.pop_back();
  return out;
}

Outbox::Wrote Outbox::write_to(int fd) {
  constexpr std::size_t kMessages = 16;  // of one call
  while (!queue_.empty()) {
    std::array<iovec, kMessages * Outgoing::kMaxPieces> parts;
    std::size_t count = 0;
    for (std::size_t i = 0; i < std::min(queue_.size(), kMessages); ++i) {
      const std::span<iovec, Outgoing::kMaxPieces> room(parts.data() + count, Outgoing::kMaxPieces);
      count += queue_[i].pieces(i == 0 ? written_ : 0, room);
    }
    const ssize_t n = ::writev(fd, parts.data(), static_cast<int>(count));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN ? Wrote::some : Wrote::broken;
    written_ += static_cast<std::size_t>(n);
    while (!queue_.empty() && written_ >= queue_.front().size()) {
      written_ -= queue_.front().size();
      bytes_ -= queue_.front().size();
      queue_.pop_front();
    }
  }
  return Wrote::all;
}

}  // namespace caisson::cdp
