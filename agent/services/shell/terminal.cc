#include "agent/services/shell/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace caisson::services {
namespace {

// The master of a PTY is one descriptor, but Asio objects close what they hold: the writer gets its own copy.
Fd copy_of(const Fd& fd) { return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)); }

}  // namespace

Terminal::Terminal(asio::any_io_executor executor, bridge::ExecStarted started, http::Budget::Share input)
    : from(executor),
      exec(std::move(started.handle)),
      executor_(executor),
      to_(executor, copy_of(started.pty), std::move(input)) {
  modes_known_ = ::tcgetattr(started.pty.get(), &modes_) == 0;
  from = make_descriptor(executor, std::move(started.pty));
}

Terminal::Terminal(asio::any_io_executor executor, MarkerParser::Memory memory, const std::string& modes,
                   http::Budget::Share input)
    : from(executor),
      exec(std::make_shared<bridge::ExecHandle>(executor)),
      executor_(executor),
      to_(executor, Fd(), std::move(input)) {
  parser.remember(std::move(memory));
  const std::string bytes = unhex(modes);
  modes_known_ = bytes.size() == sizeof modes_;
  if (modes_known_) bytes.copy(reinterpret_cast<char*>(&modes_), sizeof modes_);
}

std::string Terminal::modes() const { return modes_known_ ? hex({reinterpret_cast<const char*>(&modes_), sizeof modes_}) : ""; }

void Terminal::attach(bridge::ExecStarted started) {
  exec = std::move(started.handle);
  to_ = WriteQueue(executor_, copy_of(started.pty), to_.take_share());
  from = make_descriptor(executor_, std::move(started.pty));
}

Status Terminal::type(std::shared_ptr<Terminal> self, std::string bytes, std::size_t most_waiting) {
  TRY(self->to_.push(bytes, most_waiting));
  if (!self->to_.empty() && !std::exchange(self->feeding_, true)) {
    const asio::any_io_executor executor = self->executor_;
    spawn(executor, "terminal input", feed(std::move(self)));
  }
  return {};
}

task<void> Terminal::feed(std::shared_ptr<Terminal> self) {
  while (self->to_.flush()) {
    const auto [error] = co_await self->to_.descriptor().async_wait(Descriptor::wait_write, as_values);
    if (error) break;
  }
  self->feeding_ = false;
  co_return Status{};
}

void Terminal::resize(bridge::PtySize size) {
  if (!from.is_open()) return;
  winsize value{};
  value.ws_col = static_cast<unsigned short>(std::clamp(size.cols, 1, 1000));
  value.ws_row = static_cast<unsigned short>(std::clamp(size.rows, 1, 1000));
  (void)::ioctl(from.native_handle(), TIOCSWINSZ, &value);  // the size is a hint to programs
}

void Terminal::restore_modes() {
  if (modes_known_ && from.is_open()) (void)::tcsetattr(from.native_handle(), TCSANOW, &modes_);
}

void Terminal::interrupt(std::shared_ptr<Terminal> self, bool quit, bool set_modes) {
  if (set_modes && self->modes_known_ && self->from.is_open()) {
    termios modes = self->modes_;
    modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);  // no "^C" in the output
    (void)::tcsetattr(self->from.native_handle(), TCSANOW, &modes);
  }
  (void)type(std::move(self), quit ? "\x1c" : "\x03", 16 * kMaxWaitingInput);  // a closed terminal needs no signal
}

void Terminal::close() {
  to_.close();
  close_quietly(from);
  exec->let_go("");
}

}  // namespace caisson::services
