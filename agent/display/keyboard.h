// Keys: struck, held, and texts typed key by key. Keys that are held are released by themselves after a time. Actions come one
// after the other, so no two functions run at once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/display/keymap.h"
#include "agent/display/typing_plan.h"
#include "agent/display/x_server.h"

namespace caisson::display {

class Keyboard {
 public:
  Keyboard(Server& server, std::int64_t hold_us) : server_(server), hold_us_(hold_us) {}
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;
  ~Keyboard();

  // The names are key_named's. Done when the server has carried it out.
  [[nodiscard]] Task<Status> press(std::string name);
  [[nodiscard]] Task<Status> down(std::string name);
  [[nodiscard]] Task<Status> up(std::string name);
  // All pressed in this order and released in the opposite one.
  [[nodiscard]] Task<Status> chord(std::vector<std::string> names);
  [[nodiscard]] Task<Status> type(std::u32string text);
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
  Keymap keymap_;
  int group_ = 0;
  std::uint8_t locked_ = 0;
  std::map<Keysym, Held> held_;
  std::map<std::uint8_t, Keysym> bound_;  // spare keys that are not given back yet
  std::int64_t spares_used_us_ = 0;
  Loop::TimerId spares_timer_ = 0;
};

}  // namespace caisson::display
