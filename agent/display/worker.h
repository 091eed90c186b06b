// The agent's end of this program: frames on two descriptors, operations that run beside each other, actions one after the other.
// One thread, by the loop. The agent is trusted no more than the X server: a malformed frame ends the program.
#pragma once

#include <functional>
#include <list>

#include "agent/display/action.h"
#include "agent/display/clipboard.h"
#include "agent/display/keyboard.h"
#include "agent/display/modes.h"
#include "agent/display/mouse.h"
#include "agent/display/screen.h"
#include "agent/frames/frame.h"

namespace caisson::display {

struct Answer {
  json::Value head = json::Value::object();
  std::string body;
};

class Worker {
 public:
  // `over`: the agent is gone ("" as reason), or broke the protocol.
  Worker(Server& server, bool shared_memory, std::int64_t hold_us, std::function<void(std::string)> over);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] Task<Status> start();
  // From now on requests are read. Both descriptors become non-blocking.
  [[nodiscard]] Status serve(int in, int out);
  void on_event(std::string_view event);
  // Buttons and keys up, for the end of the program.
  void let_go();

 private:
  friend struct Operations;
  void on_input();
  void on_output();
  // Whether frames may be taken: the answers that wait are few.
  [[nodiscard]] bool has_room() const { return out_bytes_ < frames::kMostImage && running_.size() < kMostRunning; }
  void take_frames();
  [[nodiscard]] Task<bool> run(std::int64_t id, frames::Frame frame);
  [[nodiscard]] Task<Result<Answer>> operate(frames::Frame frame);
  void answer(std::int64_t id, Result<Answer> result);
  void sweep();
  void sweep_soon();
  // Of the keyboard's spare keys, after the actions that wait.
  [[nodiscard]] Task<bool> tidy();
  // Of the clipboard, after a paste.
  [[nodiscard]] Task<bool> settle();

  [[nodiscard]] Task<Result<Answer>> info(frames::Frame frame);
  [[nodiscard]] Task<Result<Answer>> screenshot(frames::Frame frame);
  [[nodiscard]] Task<Result<Answer>> action(frames::Frame frame);
  [[nodiscard]] Task<Result<Answer>> act(ActionAsked asked);
  [[nodiscard]] Task<Result<Answer>> resize_screen(frames::Frame frame);
  [[nodiscard]] Task<Result<Answer>> clipboard_get(frames::Frame frame);
  [[nodiscard]] Task<Result<Answer>> clipboard_set(frames::Frame frame);

  static constexpr std::size_t kMostRunning = 256;
  static constexpr frames::Limits kAccepted{.head_bytes = 64 * 1024, .body_bytes = frames::kMostText, .head_values = 256};

  Server& server_;
  Loop& loop_;
  Screen screen_;
  Mouse mouse_;
  Keyboard keyboard_;
  Clipboard clipboard_;
  std::function<void(std::string)> over_;
  int in_ = -1, out_ = -1;
  bool reading_ = true, writing_ = false, tidying_ = false;
  frames::Decoder decoder_{kAccepted};
  std::string unread_;
  std::deque<std::string> answers_;
  std::size_t written_ = 0, out_bytes_ = 0;  // of the first answer; of all
  Turns actions_, resizes_;
  std::size_t waiting_actions_ = 0;
  Loop::TimerId sweep_ = 0;
  std::list<Task<bool>> running_;  // last: they end before what they use
};

}  // namespace caisson::display
