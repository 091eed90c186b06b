// The CLIPBOARD selection (ICCCM, section 2) seen from both ends: Offer gives our text to whoever asks, Fetch takes the text of
// another owner. The other clients are hostile: they may ask without end, answer never, or with a gigabyte.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/display/mailbox.h"
#include "agent/display/x_server.h"

namespace caisson::display {

struct SelectionNames {
  std::uint32_t clipboard = 0, utf8_string = 0, text = 0, text_plain = 0, text_plain_utf8 = 0, targets = 0, timestamp = 0;
  std::uint32_t incr = 0, time = 0;
  std::uint32_t slots[4] = {};  // properties of our window into which others write; each fetch takes the next one
  [[nodiscard]] static Task<Result<SelectionNames>> intern(Server& server);
};

class Offer {
 public:
  // asked: of each request, and at the end of each text that is given in parts.
  using Asked = std::function<void(std::uint32_t requestor, bool has_text)>;
  Offer(Server& server, const SelectionNames& names, std::uint32_t window, Asked asked)
      : server_(server), names_(names), window_(window), asked_(std::move(asked)) {}
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;
  ~Offer();

  // From this server time on the text is the clipboard's. `viewers`: the X server may have it, too, which tells its viewers.
  [[nodiscard]] Task<Status> begin(std::shared_ptr<const std::string> text, std::uint32_t time, bool viewers);
  void end(std::uint32_t time);
  // nullptr: the clipboard is another's, or nobody's.
  [[nodiscard]] const std::shared_ptr<const std::string>& text() const { return text_; }
  [[nodiscard]] bool is_sending() const { return !transfers_.empty(); }
  void on_event(std::string_view event);

 private:
  // A text that is too large for one property, in parts (ICCCM, 2.7.2). The key: window and property.
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  struct Transfer {
    std::shared_ptr<const std::string> text;
    std::string latin1;  // instead of `text`, of a STRING
    std::uint32_t type = 0;
    std::size_t sent = 0;
    Loop::TimerId timer = 0;
    [[nodiscard]] std::string_view bytes() const { return latin1.empty() ? std::string_view(*text) : std::string_view(latin1); }
  };
  void on_request(const xcb_selection_request_event_t& request);
  enum class Given { nothing, answer, text };  // answer: or the first part of a text
  [[nodiscard]] Given answer(const xcb_selection_request_event_t& request, std::uint32_t property);
  [[nodiscard]] Given give_text(std::uint32_t requestor, std::uint32_t property, std::uint32_t target);
  void send_part(Key key);
  void forget(Key key);
  void put(std::uint32_t window, std::uint32_t property, std::uint32_t type, std::uint8_t format, std::string_view bytes);
  void watch(std::uint32_t window, bool on);

  Server& server_;
  const SelectionNames& names_;
  const std::uint32_t window_;
  const Asked asked_;
  std::shared_ptr<const std::string> text_;
  std::uint32_t since_ = 0;
  bool viewers_ = false;
  std::map<Key, Transfer> transfers_;
};

class Fetch {
 public:
  Fetch(Server& server, const SelectionNames& names, std::uint32_t window)
      : server_(server), names_(names), window_(window), notified_(server.link().loop()), written_(server.link().loop()) {}

  // The text in UTF-8; nullopt: nobody owns it, or its owner has no text. timeout: the owner did not answer until the deadline
  // (monotonic). limit: more than `most` bytes. One at a time.
  [[nodiscard]] Task<Result<std::optional<std::string>>> text(std::size_t most, std::uint32_t time, std::int64_t deadline_us);
  void on_event(std::string_view event);

 private:
  struct Property {
    std::uint32_t type = 0;
    std::uint8_t format = 0;
    std::string bytes;
  };
  [[nodiscard]] Task<Result<std::optional<std::string>>> as(std::uint32_t target, std::size_t most, std::uint32_t time,
                                                            std::int64_t deadline_us);
  [[nodiscard]] Task<Result<std::optional<std::string>>> parts(std::size_t most, std::int64_t deadline_us);
  // Takes the property away. limit: it has more than `most` bytes.
  [[nodiscard]] Task<Result<Property>> take_property(std::size_t most);

  Server& server_;
  const SelectionNames& names_;
  const std::uint32_t window_;
  std::uint32_t slot_ = 0;  // the property that is awaited; 0: none
  std::uint32_t target_ = 0;
  unsigned fetches_ = 0;
  Mailbox<bool> notified_;  // whether the owner has the text
  Mailbox<bool> written_;   // a part was written
};

}  // namespace caisson::display
