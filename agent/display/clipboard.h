// The clipboard: read, set, and used to type a text. One operation at a time; each ends after a bounded time, whatever the other
// programs do.
#pragma once

#include <memory>
#include <string>

#include "agent/display/keyboard.h"
#include "agent/display/selection.h"

namespace caisson::display {

class Clipboard {
 public:
  explicit Clipboard(Server& server)
      : server_(server), turns_(server.link().loop()), time_(server.link().loop()), taken_(server.link().loop()) {}
  [[nodiscard]] Task<Status> start();

  // Empty: the clipboard has no text. timeout: its owner does not answer. limit: the text is longer than kMostText.
  [[nodiscard]] Task<Result<std::string>> get();
  [[nodiscard]] Task<Status> set(std::string text);
  // The text comes into the clipboard, Control and v are pressed, and when the focused program has taken the text, or after two
  // seconds, the former text is back. True: it was taken. Where the former content was no text, or could not be had in time, the
  // clipboard is empty afterwards: what was typed may be a password.
  [[nodiscard]] Task<Result<bool>> paste(std::string text, Keyboard& keyboard);
  void on_event(std::string_view event);

 private:
  [[nodiscard]] Task<Result<std::uint32_t>> server_time();
  [[nodiscard]] Task<Status> offer(std::shared_ptr<const std::string> text);
  [[nodiscard]] Task<Result<std::optional<std::string>>> fetch(std::int64_t limit_us);
  [[nodiscard]] Task<Result<std::uint32_t>> focused_client();
  [[nodiscard]] Task<bool> wait_taken(std::uint32_t client);

  Server& server_;
  SelectionNames names_;
  std::uint32_t window_ = 0;
  std::unique_ptr<Offer> offer_;
  std::unique_ptr<Fetch> fetch_;
  Turns turns_;
  Mailbox<std::uint32_t> time_;   // of the server, asked by server_time()
  Mailbox<std::uint32_t> taken_;  // by whose window
  bool focused_took_ = false;
  std::uint32_t focused_ = 0;
};

}  // namespace caisson::display
