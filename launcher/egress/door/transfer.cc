#include "launcher/egress/door/transfer.h"

#include <array>
#include <cerrno>
#include <utility>

namespace caisson::egress {
namespace {

constexpr std::size_t kBuffer = 64 * 1024;

}  // namespace

Transfer::Step Transfer::step() {
  if (!out_.empty()) return write();
  if (all_read()) return Step::blocked;
  if (!ahead_.empty()) {
    const std::string bytes = std::exchange(ahead_, {});
    return judge(bytes);
  }
  if (!from_.readable() || !to_.writable()) return Step::blocked;
  const std::size_t allowed = bytes_.left(from_.poll().now_us());
  return allowed == 0 ? Step::throttled : read(std::min(allowed, kBuffer));
}

Transfer::Step Transfer::write() {
  if (!to_.writable()) return Step::blocked;
  const ssize_t sent = to_.write(out_);
  if (sent < 0) return errno == EAGAIN || errno == EINTR ? Step::moved : Step::failed;
  moved_ += static_cast<std::size_t>(sent);
  bytes_.spend(static_cast<std::size_t>(sent));
  if (static_cast<std::size_t>(sent) == out_.size()) out_.clear();
  else out_.erase(0, static_cast<std::size_t>(sent));
  return Step::moved;
}

Transfer::Step Transfer::read(std::size_t most) {
  static std::array<char, kBuffer> buffer;
  const ssize_t got = from_.read({buffer.data(), most});
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Step::moved : Step::sender_gone;
  if (got > 0) return judge({buffer.data(), static_cast<std::size_t>(got)});
  if (!until_close_) return Step::sender_gone;
  closed_ = true;
  return Step::moved;
}

// Written from where it stands; only what the socket does not take is copied.
Transfer::Step Transfer::judge(std::string_view bytes) {
  const Outcome taken = body_.take(bytes);
  if (taken.refused()) return Step::wrong;
  const std::string_view ours = bytes.substr(0, taken.done() ? taken.size : bytes.size());
  ahead_.assign(bytes.substr(ours.size()));
  const ssize_t sent = ours.empty() ? 0 : to_.write(ours);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return Step::failed;
  const auto written = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  moved_ += written;
  bytes_.spend(written);
  out_.assign(ours.substr(written));
  return Step::moved;
}

}  // namespace caisson::egress
