// Keys: struck, held, and texts typed key by key. Keys that are held are released by themselves after a time. Actions come one
// after the other, so no two functions run at once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/display/keymap.h"
#include "agent/display/typing_plan.h"
#include "agent/display/x_server.h"

namespace caisson::display {

class Keyboard {
 public:
  // `wanted`: tidy() is due. It comes from the loop, at any time.
  Keyboard(Server& server, std::int64_t hold_us, std::function<void()> wanted)
      : server_(server), hold_us_(hold_us), wanted_(std::move(wanted)) {}
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;
  ~Keyboard();

  // Frees the multimedia keys: some hundred spare ones instead of twelve, for TYPING and for the X server, which binds one to
  // each character of a viewer that the layout lacks, and keeps it. When more than half are bound and no key has changed for a
  // time, all are to be given back (`wanted`, then tidy()): the map is not full when a viewer types. A character in use is bound
  // again.
  [[nodiscard]] Task<Status> start();
  void on_event(std::string_view event);
  [[nodiscard]] Task<Status> tidy();

  // The names are key_named's. Done when the server has carried it out.
  [[nodiscard]] Task<Status> press(std::string name);
  [[nodiscard]] Task<Status> down(std::string name);
  [[nodiscard]] Task<Status> up(std::string name);
  // All pressed in this order and released in the opposite one.
  [[nodiscard]] Task<Status> chord(std::vector<std::string> names);
  [[nodiscard]] Task<Status> type(std::u32string text);
  // Whether a program may take it, with others, as the command to paste.
  [[nodiscard]] static bool may_paste(const std::vector<std::string>& names);
  // Control and v, whatever the layout.
  [[nodiscard]] Task<Status> paste();
  // After each action: spare keys are given back when programs have had the time to read what was typed on them.
  void rest();
  // Releases what is held and gives spare keys back, for a program that is about to end: nothing is awaited.
  void let_go();

 private:
  struct Held {
    std::uint8_t keycode = 0;
    Loop::TimerId timer = 0;
  };
  [[nodiscard]] Task<Status> read_map();
  [[nodiscard]] bool is_held(std::uint8_t keycode) const;
  [[nodiscard]] Task<Status> chord_of(std::vector<Keysym> keysyms);
  // The stroke for a keysym after read_map(), by a spare key where the layout lacks it.
  [[nodiscard]] Task<Result<Stroke>> stroke_for(Keysym keysym);
  void bind(Binding binding);
  void release_spares();
  void press_modifiers(std::uint8_t modifiers, bool down);
  void strike(Stroke stroke);
  void hold(Keysym keysym, std::uint8_t keycode);
  void release(Keysym keysym);
  [[nodiscard]] std::vector<std::uint8_t> free_spares() const;

  Server& server_;
  const std::int64_t hold_us_;
  std::function<void()> wanted_;
  std::vector<std::uint8_t> spare_;  // as start() left them
  Loop::TimerId quiet_timer_ = 0;
  Keymap keymap_;
  int group_ = 0;
  std::uint8_t locked_ = 0;
  std::map<Keysym, Held> held_;
  std::map<std::uint8_t, Keysym> bound_;  // spare keys that are not given back yet
  std::int64_t spares_used_us_ = 0;
  Loop::TimerId spares_timer_ = 0;
};

}  // namespace caisson::display
