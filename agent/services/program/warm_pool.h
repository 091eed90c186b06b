// WarmPool: single-use sessions of one workspace in which an interpreter has started already and waits for its one job on stdin.
// A session is taken once and never comes back. Sessions are prepared only of kinds that are asked for, a few of each, and end
// when nobody has asked for a while, when they are too old for a whole job, and when the policies have changed.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/services/common/roster.h"
#include "agent/services/program/solo_session.h"

namespace caisson::services {

// A program in a session of its own, which reads its job from stdin: an interpreter, or what becomes one
// (agent/worker/starter.cc).
struct Interpreter {
  SoloSession::Pointer session;
  SoloSession::CommandPtr command;
  bridge::Clock::time_point made;
};

struct InterpreterKind {
  SoloSession::Place place;
  std::vector<std::string> argv;
  std::string_view program;  // of agent/inside, which argv's own few lines read from stdin; "": it reads none
  bool tool = false;         // argv[0] is one of the agent's programs
  [[nodiscard]] auto key() const { return std::tuple(place.domain, place.isolated, argv); }
};

// Starts one; it reads its job next.
[[nodiscard]] task<Interpreter> start_interpreter(std::shared_ptr<CodeContext> context, InterpreterKind kind,
                                                  std::string cwd = "/");

class WarmPool {
 public:
  explicit WarmPool(std::shared_ptr<CodeContext> context);
  ~WarmPool();
  WarmPool(const WarmPool&) = delete;
  WarmPool& operator=(const WarmPool&) = delete;

  // One that waits, or a new one; more are then prepared. What is narrowed for one job is made for it: clients choose the number,
  // and each would otherwise have a shelf of its own.
  [[nodiscard]] task<Interpreter> take(InterpreterKind kind);
  // Ends all that wait: what they were prepared with holds no more.
  void flush();
  // And prepares none of the kinds that were asked for: they are another workspace's.
  void forget();
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Shelf {
    InterpreterKind kind;
    std::deque<Interpreter> waiting;  // oldest first
    bridge::Clock::time_point asked;
    bool refilling = false;
  };
  using Key = decltype(std::declval<InterpreterKind>().key());

  static task<void> refill(WarmPool* self, std::shared_ptr<const Life> life, Key key);
  static task<void> expire(WarmPool* self);
  void drop_one();

  std::shared_ptr<CodeContext> context_;
  std::map<Key, Shelf> shelves_;
  std::size_t generation_ = 0;  // of the policies
  bool expiring_ = false;
  Roster roster_;
};

}  // namespace caisson::services
