// The clipboard: read, set, and used to type a text. One operation at a time; each ends after a bounded time, whatever the other
// programs do.
//
// A program may ask for the text of one paste more than once: Chromium asks twice, and for the list of formats some fifteen times
// between and after. So a text that was pasted stays in the clipboard for a while after the last request, and comes before any
// other text.
#pragma once

#include <memory>
#include <string>

#include "agent/display/keyboard.h"
#include "agent/display/selection.h"

namespace caisson::display {

class Clipboard {
 public:
  // `wanted`: settle() is due.
  Clipboard(Server& server, std::function<void()> wanted)
      : server_(server),
        wanted_(std::move(wanted)),
        turns_(server.link().loop()),
        time_(server.link().loop()),
        asked_(server.link().loop()) {}
  Clipboard(const Clipboard&) = delete;
  Clipboard& operator=(const Clipboard&) = delete;
  ~Clipboard() { server_.link().loop().cancel(keep_timer_); }
  [[nodiscard]] Task<Status> start();

  // Empty: the clipboard has no text. timeout: its owner does not answer. limit: the text is longer than kMostText.
  [[nodiscard]] Task<Result<std::string>> get();
  [[nodiscard]] Task<Status> set(std::string text);
  // The text comes into the clipboard, of which viewers are not told, and Control and v are pressed. True: the focused program
  // has taken the text; false: no program has, within two seconds, or seven if the focused one asks for the list of formats.
  // The former text is back with settle(). Where the former content was no text, or could not be had in time, the clipboard is
  // empty then: what was typed may be a password.
  [[nodiscard]] Task<Result<bool>> paste(std::string text, Keyboard& keyboard);
  // Waits until no program asks for the text of a paste any more, at most six seconds; then the former text is back.
  [[nodiscard]] Task<Status> settle();
  void on_event(std::string_view event);

 private:
  struct Pasted {
    std::shared_ptr<const std::string> text, former;  // former: nullptr if there was none
    std::int64_t until_us = 0, last_us = 0;           // it is kept until then, which requests put off; at most to last_us
  };
  [[nodiscard]] Task<Result<std::uint32_t>> server_time();
  [[nodiscard]] Task<Status> offer(std::shared_ptr<const std::string> text, bool viewers = true);
  [[nodiscard]] Task<Result<std::optional<std::string>>> fetch(std::int64_t limit_us);
  [[nodiscard]] Task<Result<std::uint32_t>> focused_client();
  void on_asked(std::uint32_t requestor, bool has_text);
  [[nodiscard]] Task<bool> wait_taken();
  void keep();
  // The text of a paste if it is in the clipboard still; nullptr if another is there.
  [[nodiscard]] const Pasted* kept() const { return pasted_ && offer_->text() == pasted_->text ? &*pasted_ : nullptr; }
  [[nodiscard]] Task<bool> quiet();
  [[nodiscard]] Task<Status> give_back();

  Server& server_;
  const std::function<void()> wanted_;
  SelectionNames names_;
  std::uint32_t window_ = 0;
  std::unique_ptr<Offer> offer_;
  std::unique_ptr<Fetch> fetch_;
  Turns turns_;
  Mailbox<std::uint32_t> time_;  // of the server, asked by server_time()
  Mailbox<bool> asked_;          // a program has asked for the text of a paste
  std::uint32_t focused_ = 0;    // client that is pasted into; 0: unknown
  bool taken_ = false, focused_took_ = false;
  std::optional<Pasted> pasted_;
  Loop::TimerId keep_timer_ = 0;
};

}  // namespace caisson::display
