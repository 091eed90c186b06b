// Messages between the observer and the auditor over one SOCK_SEQPACKET pair: fixed structs, one program on one kernel. The
// observer tells of one call and waits for `answered`, so at most one is under way.
#pragma once

#include <linux/seccomp.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace caisson::auditor {

inline constexpr std::uint32_t kMaxPath = 4096;  // with its NUL, as the kernel's PATH_MAX

struct ToObserver {
  enum class Type : std::uint32_t {
    watch = 1,     // with the listener; behind it the numbers (int) of the calls that this filter refuses
    release = 2,   // the session is over; answered by `gone`
    answered = 3,  // the call that was told of can go on; rest_ms: for so long answer without telling
  };
  Type type;
  std::uint32_t rest_ms;
  std::uint64_t key;
};

struct Told {
  enum class Type : std::uint32_t {
    call = 1,  // behind it the texts
    gone = 2,  // the session's last process, or its release: nothing follows
  };
  // One path, and where it begins when it is relative. kUnread: the memory or the descriptor could not be read.
  static constexpr std::uint32_t kUnread = ~0U;
  Type type;
  std::uint32_t sizes[4];  // path, directory, second path, its directory
  std::uint64_t key;
  std::uint64_t refused, passed;  // calls since the last message that were answered without telling
  std::uint64_t open_flags;       // of openat2
  seccomp_notif call;
};

struct Texts {
  Told head;
  std::optional<std::string_view> texts[4];  // nullopt: unread
};
// nullopt: not a message of the observer's.
[[nodiscard]] std::optional<Texts> parse_told(std::string_view message);

// A whole message of either kind, at most.
inline constexpr std::size_t kMaxTold = sizeof(Told) + std::size_t{4} * kMaxPath;
inline constexpr std::size_t kMaxRefused = 1024;
inline constexpr std::size_t kMaxToObserver = sizeof(ToObserver) + kMaxRefused * sizeof(int);

// The numbers that begin the lines of a list of refusals (common/wire/auditor_protocol.h).
[[nodiscard]] std::vector<int> refused_numbers(std::string_view refusals);

}  // namespace caisson::auditor
