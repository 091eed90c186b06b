// KeyScanner: which keys a viewer presses. It changes nothing of what passes and refuses nothing: what it does not understand
// ends the looking, not the connection. Pure; it holds at most 20 bytes of a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::services {

class KeyScanner {
 public:
  static constexpr std::size_t kMostKeys = 64;  // of one piece; further ones are left out

  // The keysyms that are pressed in the next bytes and that not every layout has: neither ASCII nor a key without a character.
  [[nodiscard]] std::vector<std::uint32_t> scan(std::string_view bytes);

 private:
  enum class State { version, security, init, type, head, encodings, rest, lost };
  void begin(State state, std::size_t need);
  void take(std::vector<std::uint32_t>& keys);
  void take_head(std::vector<std::uint32_t>& keys);

  State state_ = State::version;
  std::string held_;        // of what must be whole
  std::size_t need_ = 12;   // bytes of that
  std::uint64_t left_ = 0;  // bytes of the message
  bool long_pointer_ = false;
};

}  // namespace caisson::services
