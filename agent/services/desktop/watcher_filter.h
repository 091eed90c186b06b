// WatcherFilter: what a viewer who only watches may say to the X server (RFC 6143, 7.1 to 7.5, and the community's RFB protocol
// for what lies beyond it). Requests for pictures pass; keys, the pointer, the clipboard and sizes are dropped; a message of an
// unknown type ends the connection, for its length is unknown. It also says for the viewer that it takes no clipboard unasked:
// what is copied in the workspace then stays there. Pure; it holds at most 20 bytes of a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/common/base/result.h"

namespace caisson::services {

class WatcherFilter {
 public:
  // What of the next bytes the X server gets. Error: protocol, and from then on for all that follows.
  [[nodiscard]] Result<std::string> pass(std::string_view bytes);

 private:
  enum class State { version, security, init, type, head, encodings, rest, broken };
  [[nodiscard]] Status take_head(std::string& out);
  [[nodiscard]] Status take_type();
  void take_encoding(std::string& out);
  void begin(State state, std::size_t need);

  State state_ = State::version;
  std::string held_;        // of what must be whole
  std::size_t need_ = 12;   // bytes of that
  std::uint64_t left_ = 0;  // of the message: encodings, or bytes
  bool passes_ = false;     // what is left
};

}  // namespace caisson::services
