// The child's end of the records of steps (steps.h).
#pragma once

#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/common/base/scm.h"
#include "launcher/common/kernel/faults.h"
#include "launcher/common/wire/steps.h"

namespace caisson::confine {

// Async-signal-safe. Records are written together, by `flush` and with a failed one: each alone would wake the
// launcher, some ten microseconds, on the processor that the child's helper works on. Of a child that is killed the launcher
// learns by the end of the socket or pipe, however many of its records came.
class StepWriter {
 public:
  enum class To { socket, pipe };  // a pipe gets the bare records: `caisson run` has one, whose end is the exec
  explicit StepWriter(int fd, To to = To::socket) : fd_(fd), to_(to), last_(now()) {}
  void move_to(int fd) { fd_ = fd; }
  void done(Step step, std::int32_t value = 0) {
    if (faults::fail(kSteps[static_cast<int>(step)].name)) failed(step, ENOSPC);
    put({step, kNoEntry, 0, lap(), value});
  }
  [[noreturn]] void failed(Step step, int error, std::uint16_t entry = kNoEntry) {
    put({step, entry, error != 0 ? error : EIO, lap(), 0});
    flush();
    ::_exit(1);
  }
  // With the descriptors that the records are about.
  void flush(const int* fds = nullptr, std::size_t count = 0) {
    const bool socket = to_ == To::socket;
    const std::size_t size = socket ? Steps::size(count_) : count_ * sizeof(StepRecord);
    const ssize_t sent = socket ? scm::send(fd_, &steps_, size, fds, count) : ::write(fd_, steps_.records, size);
    // Nobody reads any more: the launcher is gone, and with it the reason to go on.
    if (sent != static_cast<ssize_t>(size)) ::_exit(1);
    count_ = 0;
  }

 private:
  static std::int64_t now() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
  }
  std::uint32_t lap() {
    const std::int64_t before = last_;
    last_ = now();
    return static_cast<std::uint32_t>(last_ - before);
  }
  void put(const StepRecord& record) {
    if (count_ == kStepCount) flush();
    steps_.records[count_++] = record;
  }
  int fd_;
  To to_;
  std::int64_t last_;
  std::size_t count_ = 0;
  Steps steps_;
};

}  // namespace caisson::confine
