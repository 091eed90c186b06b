// Markers: how a session's bash reports its state to the agent. Each is an OSC escape sequence in the terminal's stream,
//   ESC ] 7717 ; kind ; nonce ; number ; path BEL
// which terminals ignore. The nonce is random and new for each command, so output of an earlier command (a log shown again) is
// never taken for a marker. Residual: a command runs inside that very bash and can read the shell variable with the nonce, so it
// can announce its own end early. It deceives only its own caller.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace caisson::services {

struct Marker {
  enum class Kind {
    start,    // 'S': the command begins; number: 1, or 0 when its exec_dir could not be entered
    prompt,   // 'P': bash is ready for a line; number: exit code of the last one
    busy,     // 'B': a line typed by a person begins to run
    leaving,  // 'X': bash exits
  };
  Kind kind;
  int number = 0;
  std::string path;    // bash's working directory
  bool older = false;  // with the nonce before the last one
};

using StreamItem = std::variant<std::string, Marker>;  // a text or a marker, in the stream's order

class MarkerParser {
 public:
  void expect(std::string nonce) {
    older_ = std::exchange(nonce_, std::move(nonce));
    take_older_ = false;
  }
  // Markers with the previous nonce are recognised, too, until the next one.
  void expect_older() { take_older_ = !older_.empty(); }
  [[nodiscard]] std::vector<StreamItem> feed(std::string_view bytes);
  // Text that was held back because it could have become a marker.
  [[nodiscard]] std::string take_rest() { return std::exchange(held_, {}); }

  // Its whole state, for a later agent.
  struct Memory {
    std::string nonce, older, held;
  };
  [[nodiscard]] Memory memory() const { return {nonce_, older_, held_}; }
  void remember(Memory memory);
  [[nodiscard]] bool holds() const { return !held_.empty(); }

 private:
  std::string nonce_, older_;
  bool take_older_ = false;
  std::string held_;
};

}  // namespace caisson::services
