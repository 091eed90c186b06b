#include "agent/services/program/fd_stream.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>

#include "launcher/common/base/sys.h"

namespace caisson::services {

detail::ReadPiece detail::read_piece(int fd, const Keep::Record* record, int stream) {
  static std::array<char, Keep::kLandingBytes> own;
  Keep* const keep = record != nullptr ? record->keep() : nullptr;
  char* buffer = own.data();
  if (keep != nullptr) {
    int there = 0;
    if (::ioctl(fd, FIONREAD, &there) != 0 || there < 0) there = 0;
    buffer = keep->land(*record, stream, std::min(static_cast<std::size_t>(there), Keep::kLandingBytes));
  }
  ssize_t n;
  do n = ::read(fd, buffer, Keep::kLandingBytes);
  while (n < 0 && errno == EINTR);
  if (keep != nullptr && n > 0) keep->landed(static_cast<std::size_t>(n));
  else if (keep != nullptr) keep->nothing_landed();
  if (n > 0) return {ReadEnd::more, {buffer, static_cast<std::size_t>(n)}};
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {ReadEnd::blocked, {}};
  return {ReadEnd::closed, {}};
}

Descriptor make_descriptor(const asio::any_io_executor& executor, Fd fd) {
  if (!fd) return Descriptor(executor);
  Descriptor descriptor(executor, fd.release());
  boost::system::error_code ignored;
  descriptor.non_blocking(true, ignored);
  return descriptor;
}

void close_quietly(Descriptor& descriptor) {
  boost::system::error_code ignored;
  if (descriptor.is_open()) descriptor.close(ignored);
}

WriteQueue::WriteQueue(asio::any_io_executor executor, Fd fd, http::Budget::Share share)
    : to_(make_descriptor(executor, std::move(fd))), share_(std::move(share)) {}

Status WriteQueue::push(std::string_view bytes, std::size_t most_waiting) {
  if (!to_.is_open() || close_later_) return fail(Code::io, "the input of the command is closed");
  if (bytes.size() > most_waiting)
    return fail(Code::limit, "the input is larger than " + std::to_string(most_waiting) + " bytes: write it in parts");
  if (const std::size_t left = waiting_.size() - done_; left + bytes.size() > most_waiting)
    return fail(Code::limit, "the command does not read its input: " + std::to_string(left) + " bytes wait");
  if (share_.resize(waiting_.size() + bytes.size()) != http::Room::granted)
    return fail(Code::limit, "the workspace has no room for more input that waits to be read");
  waiting_.append(bytes);
  (void)flush();  // the caller waits for the rest
  if (!to_.is_open()) return fail(Code::io, "the command has closed its input");
  return {};
}

bool WriteQueue::flush() {
  while (to_.is_open() && done_ < waiting_.size()) {
    const ssize_t n = ::write(to_.native_handle(), waiting_.data() + done_, waiting_.size() - done_);
    if (n > 0) {
      done_ += static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else {
      close();
    }
  }
  // Moves the rest only when it is the smaller half: otherwise a program that reads a page at a time would cause a move of
  // everything for each page.
  if (done_ > waiting_.size() / 2) waiting_.erase(0, std::exchange(done_, 0));
  (void)share_.resize(waiting_.size());
  if (waiting_.empty()) {
    waiting_.shrink_to_fit();
    if (close_later_) close();
  }
  return !waiting_.empty();
}

void WriteQueue::close() {
  waiting_.clear();
  share_.release();
  done_ = 0;
  close_quietly(to_);
}

void WriteQueue::close_when_empty() {
  close_later_ = true;
  if (waiting_.empty()) close();
}

}  // namespace caisson::services
