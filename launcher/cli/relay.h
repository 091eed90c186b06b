// Joins the caller's terminal and the command's pseudo-terminal: raw mode here, bytes both ways, window size. The caller's
// own terminal is never handed into a session, so nothing can be typed into it from there.
#pragma once

#include <termios.h>

#include <memory>

#include "launcher/common/base/loop.h"

namespace caisson::cli {

class Relay {
 public:
  // stdin and stdout must be terminals. Restores the terminal when it is destroyed.
  [[nodiscard]] static Result<std::unique_ptr<Relay>> start(Fd master, Loop& loop);
  ~Relay();
  void resize() const;
  void drain();  // what the command has written before it ended

 private:
  Relay(Fd master, Loop& loop, const termios& before) : master_(std::move(master)), loop_(loop), before_(before) {}
  bool copy(int from, int to);
  Fd master_;
  Loop& loop_;
  termios before_;
};

}  // namespace caisson::cli
