// Messages between the launcher and caisson-auditor over one SOCK_SEQPACKET pair. Each end bounds what it takes from the other:
// the launcher treats a message that is not one of these as the end of the auditor, and the auditor one of the launcher's as its
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace caisson::auditor {

inline constexpr int kSocketFd = 3;      // the auditor's end of the pair; the observer's, of its pair with the auditor
inline constexpr int kLostObserver = 8;  // exit status of an auditor whose observer has died
inline constexpr std::size_t kMaxMessage = 32 * 1024;
inline constexpr std::size_t kMaxText = 16 * 1024;  // of one part that the auditor sends

enum class Type : std::uint32_t {
  // launcher -> auditor
  watch = 1,    // with one descriptor, the listener of a new session; text: its refusals (below)
  release = 2,  // the session has ended: send what is left of it, then `ended`
  // auditor -> launcher
  ready = 3,    // sealed; the first message
  denial = 4,   // text: a JSON object, the record of one call
  dropped = 5,  // text: a JSON object, calls that were counted only
  closed = 6,   // text: a JSON object; the listener was given up while the session lives
  ended = 7,    // text: a JSON object with totals; nothing follows about this session
  path = 8,     // text: a JSON object, the record of one path that the walls refuse, as far as a name can tell
  // launcher -> auditor
  observer = 9,  // with one descriptor, a socket to the observer: before the first session whose paths are observed
};

// A message is one part from the launcher, one or several from the auditor: a head and `size` bytes of text.
struct Head {
  Type type;
  std::uint32_t size;
  char session[24];  // NUL-terminated; "": a canary, whose calls are answered and not recorded
};

// Refusals of a filter: a line "<number> <name> <rule>\n" for each system call that it can refuse. Every such call is answered
// EPERM, as the filter itself would have answered it.
//
// Where paths are observed, a NUL and what the session sees follow, each text NUL-terminated: for every place its letters (w: can
// be written, x: executed, h: hidden, l: writing is refused by Landlock, not by the mount) and its path, for every link "=", its
// path and its target.

// A head and its text, as bytes.
[[nodiscard]] inline std::string part(Type type, std::string_view session, std::string_view text) {
  Head head{type, static_cast<std::uint32_t>(text.size()), {}};
  session.copy(head.session, sizeof head.session - 1);
  return std::string(reinterpret_cast<const char*>(&head), sizeof head).append(text);
}

}  // namespace caisson::auditor
