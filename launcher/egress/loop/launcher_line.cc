#include "launcher/egress/loop/launcher_line.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace caisson::egress {
namespace {

std::optional<OrderHead> order_of(std::string_view message) {
  OrderHead head;
  if (message.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, message.data(), sizeof head);
  if (head.order < Order::open || head.order > Order::dialer) return std::nullopt;
  const bool has_text =
      head.order >= Order::member && head.order != Order::opener && head.order != Order::ports && head.order != Order::dialer;
  if (!has_text && message.size() != sizeof head) return std::nullopt;
  return head;
}

}  // namespace

LauncherLine::LauncherLine(Poll& poll, Fd fd, Ordered ordered, std::function<void()> ended)
    : link_(
          poll, std::move(fd),
          [ordered = std::move(ordered)](std::string_view message, std::vector<Fd> fds) {
            const auto order = order_of(message);
            return order && ordered(*order, message.substr(sizeof(OrderHead)), std::move(fds));
          },
          std::move(ended)) {}

bool LauncherLine::tell(Said said, std::uint64_t workspace, std::string_view text) {
  return text.size() <= kMaxText &&
         link_.say(message_of(SaidHead{said, static_cast<std::uint32_t>(text.size()), workspace}, text));
}

// Room for what there is, not for the most there could be: a door whose lists come often would be busy with zeros. It grows as it
// is filled: fstat(3) is newfstatat(2), which the door's filter does not permit.
std::optional<std::string> bytes_of(int file, std::size_t most) {
  std::string out(std::min<std::size_t>(most + 1, 16 * 1024), '\0');
  std::size_t size = 0;
  for (;;) {
    const ssize_t got = ::pread(file, out.data() + size, out.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > most) return std::nullopt;
    if (size == out.size()) out.resize(std::min(most + 1, out.size() * 2));
  }
  out.resize(size);
  out.shrink_to_fit();
  return out;
}

}  // namespace caisson::egress
