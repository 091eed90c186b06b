// Why a session or a command has ended, and which limits are recorded as hit: the words of records, events and answers. Closed
// lists: a literal that is in none does not compile where one is asked for. agent/bridge/end.cc has a row for each way in which a
// session ends (scripts/tables.py).
#pragma once

#include <string_view>

#include "launcher/common/base/word.h"

namespace caisson {

// Of a session: asked for, with what it belongs to, by a limit, because it could not be built or verified, because its first
// process or a helper failed.
inline constexpr std::string_view kSessionEnds =
    "destroyed client_gone workspace_end policy_reload shutdown session_seconds processes memory oom disk build_failed "
    "verification_failed refused uncovered grants_changed init_died init_hung init_protocol audit_failed auditor_died "
    "observer_died";
// Of a command: by itself, by the kernel's limit of memory, by its time, or with its session.
inline constexpr std::string_view kCommandEnds = "exit signal oom hard_timeout session_end";
// Of one session, of all sessions of a workspace, of one process.
inline constexpr std::string_view kLimitHits =
    "processes memory workspace_processes workspace_memory workspace_disk cpu_seconds file_size_bytes";

template <const std::string_view& List>
struct WordOf {
  WordOf() = default;  // none yet
  consteval WordOf(const char* literal) : text(literal) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count_words(List)); ++i)
      if (word(List, i) == text) return;
    throw "this word is not in the list";
  }
  bool operator==(const WordOf&) const = default;
  [[nodiscard]] bool empty() const { return text.empty(); }
  std::string_view text;
};
using SessionEnd = WordOf<kSessionEnds>;
using CommandEnd = WordOf<kCommandEnds>;
using LimitHit = WordOf<kLimitHits>;

}  // namespace caisson
