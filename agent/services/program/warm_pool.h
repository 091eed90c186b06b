// WarmPool: single-use sessions of one workspace in which an interpreter has started already and waits for its one job on stdin.
// A session is taken once and never comes back. A few are prepared of each kind that is in use. They end when the kind was not
// used for a while, when they are too old for a whole job, and when the policies have changed.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/services/common/roster.h"
#include "agent/services/program/solo_session.h"

namespace caisson::services {

// A program in a session of its own that reads its job from stdin: an interpreter, or the starter (agent/worker/starter.cc).
struct Interpreter {
  SoloSession::Pointer session;
  SoloSession::CommandPtr command;
  bridge::Clock::time_point made;
};

struct InterpreterKind {
  SoloSession::Setup setup;
  std::vector<std::string> argv;
  std::string_view program;  // of agent/inside, read from stdin by the few lines in argv; "": none is read
  bool tool = false;         // argv[0] is one of the agent's programs
  [[nodiscard]] auto key() const { return std::tuple(setup.domain, setup.isolated, argv); }
};

// Starts one, which then waits for its job.
[[nodiscard]] task<Interpreter> start_interpreter(std::shared_ptr<CodeContext> context, InterpreterKind kind,
                                                  std::string cwd = "/");

class WarmPool {
 public:
  explicit WarmPool(std::shared_ptr<CodeContext> context);
  ~WarmPool();
  WarmPool(const WarmPool&) = delete;
  WarmPool& operator=(const WarmPool&) = delete;

  // A prepared session, or a new one; more are then prepared. A session narrowed for one job is always new: clients choose the
  // figure, and each figure would otherwise have a shelf of its own.
  [[nodiscard]] task<Interpreter> take(InterpreterKind kind);
  // Ends all prepared sessions: they were made under conditions that no longer hold.
  void flush();
  // Also forgets the kinds in use, which belong to another workspace.
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
