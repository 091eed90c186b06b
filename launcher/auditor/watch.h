// One session: what is to be written about its calls. One whose refused calls alone are told of has its listener here, which is
// answered as well; one whose paths are observed has it in the observer, which tells. Knows neither the sockets nor the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "launcher/auditor/budget.h"
#include "launcher/auditor/view.h"
#include "launcher/common/base/fd.h"
#include "launcher/common/watching/observer_protocol.h"
#include "launcher/common/wire/auditor_protocol.h"

namespace caisson::auditor {

// Where records go. `room`: whether there is space for one more; where there is none, calls are counted.
struct Sink {
  std::function<bool()> room;
  std::function<void(Type, const std::string& session, std::string text)> put;
};

// What the sessions of one policy have in common.
struct Rules {
  std::string text;  // as it came
  std::string_view refusals;
  View view;
  bool observed = false;

  [[nodiscard]] static std::shared_ptr<const Rules> parse(std::string_view text);
  // The call's name and why it is refused; false: it is not.
  [[nodiscard]] bool find(int nr, std::string& name, std::string& why) const;
};

class Watch {
 public:
  static constexpr std::uint32_t kRestMs = 1'000;

  // listener: or a socket to the session's connector, which has it and tells.
  Watch(std::string session, Fd listener, std::shared_ptr<const Rules> rules);

  [[nodiscard]] const std::string& session() const { return session_; }
  [[nodiscard]] bool observed() const { return rules_->observed; }
  // One call, which must be waiting. False: the flood is too much, and the listener has been given up.
  [[nodiscard]] bool answer(std::int64_t now_us, int proc, TokenBucket& all, Sink& sink);
  // The same, of one that the observer answers: for so many milliseconds it need not tell of others.
  [[nodiscard]] std::uint32_t told(const Texts& told, std::int64_t now_us, int proc, TokenBucket& all, Sink& sink);
  // What the observer has answered without telling.
  void untold(const Told& head, std::int64_t now_us);
  // What was only counted since the last time.
  [[nodiscard]] bool counted() const { return counted_since_us_ != 0; }
  void put_counts(std::int64_t now_us, Sink& sink);
  // The session is over: the last there is to say.
  void end(std::int64_t now_us, Sink& sink);
  // It goes on, and nobody will tell of it any more.
  void lose(std::int64_t now_us, Sink& sink, const char* reason, const char* from_now_on);

 private:
  using Counts = std::map<int, std::uint64_t>;
  [[nodiscard]] bool next(seccomp_notif& call, bool& over);  // `over`: nobody tells of any more
  void refuse(std::uint64_t call);
  void count(Counts& counts, int nr, std::int64_t now_us);
  void record(const seccomp_notif& call, std::int64_t now_us, int proc, Sink& sink);
  void look(const PathCall& call, Want want, const Texts& told, std::size_t path, std::int64_t now_us, int proc, TokenBucket& all,
            Sink& sink);
  void put_counts(Counts& counts, bool advisory, std::int64_t now_us, Sink& sink);
  [[nodiscard]] std::string totals(const char* reason, const char* from_now_on) const;

  const std::string session_;
  Fd listener_;
  const bool relayed_;  // by a connector
  const std::shared_ptr<const Rules> rules_;
  Budget budget_, paths_{kPathBurst, kPathPerSecond, kMostPathsPerSecond};
  Counts counts_, path_counts_;  // by call; kAnyCall: whichever
  std::int64_t counted_since_us_ = 0;
  std::uint64_t recorded_ = 0, dropped_ = 0;
  std::uint64_t paths_recorded_ = 0, paths_dropped_ = 0, paths_unseen_ = 0, unseen_now_ = 0;
};

}  // namespace caisson::auditor
