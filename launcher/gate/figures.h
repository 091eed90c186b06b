// What goes out and what is refused, in numbers: of all workspaces since the gate's start, those that have ended included. The
// door counts for each workspace from when it was told of it; what is added here is what its number has grown by, so a door that
// is started anew takes nothing away.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>

#include "launcher/common/base/json.h"
#include "launcher/common/base/word.h"
#include "launcher/common/egress/protocol.h"

namespace caisson::gate {

class Figures {
 public:
  // From here on the door counts for it, from 0.
  void begin(std::uint64_t workspace) { last_[workspace] = {}; }
  void end(std::uint64_t workspace) { last_.erase(workspace); }
  // The door is another one, which is told of each workspace anew.
  void again() { last_.clear(); }
  // Said::figures and Said::dropped of a workspace. What is no counter, or of no workspace, counts as nothing.
  void take(std::uint64_t workspace, const json::Value& figures);
  void take_dropped(const json::Value& dropped);
  // A refusal that the door does not count: the opener's.
  void refused(egress::Refusal refusal) { ++refused_[static_cast<std::size_t>(refusal)]; }
  void dropped() { ++dropped_; }
  // Of the container's own ports, which no word of Refusal tells.
  void own_port() { ++own_port_; }
  [[nodiscard]] json::Value shown() const;

 private:
  static constexpr std::size_t kRefusals = static_cast<std::size_t>(count_words(words(egress::Refusal{})));
  // The door's counters, without `open`, which is a number of this moment.
  enum Counter { ended, failed, names, up, down, kCounters };
  struct Counts {
    std::array<std::uint64_t, kCounters> counters{};
    std::array<std::uint64_t, kRefusals> refused{};
    std::uint64_t open = 0;
  };

  std::map<std::uint64_t, Counts> last_;  // as the door said it
  std::array<std::uint64_t, kCounters> counters_{};
  std::array<std::uint64_t, kRefusals> refused_{};
  std::uint64_t dropped_ = 0, own_port_ = 0;
};

}  // namespace caisson::gate
