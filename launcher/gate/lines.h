// The agent's lines to us, each handed over by the launcher for one workspace: one request comes, one answer goes, and the line
// ends. The agent may have been taken over: what it sends is bounded and checked, and what it asks of is the line's workspace.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/json.h"
#include "launcher/common/base/loop.h"
#include "launcher/common/telling/shares.h"

namespace caisson::gate {

class Lines {
 public:
  using Reply = std::function<void(const Result<json::Value>& result)>;
  struct From {
    std::uint64_t workspace;
    bool operator_;  // who reached the control socket; else the agent
  };
  using Asked = std::function<void(const From& from, const json::Value& request, Reply reply)>;
  Lines(Loop& loop, Asked asked) : loop_(loop), asked_(std::move(asked)) {}
  Lines(const Lines&) = delete;
  // One more; where the workspace has too many, what it asks is answered with an error. Too many of all are ended at once. An
  // operator's do not count among the agent's.
  void add(const From& from, Fd line);

 private:
  static constexpr std::size_t kMost = 512, kMostAsking = 192;
  static constexpr std::int64_t kPatienceUs = 30'000'000;
  struct Line {
    Fd fd;
    From from;
    Share share;  // of kMostAsking
    Loop::TimerId late = 0;
  };
  void hear(std::uint64_t number);
  void reply(std::uint64_t number, const Result<json::Value>& result);
  void end(std::uint64_t number);

  Loop& loop_;
  const Asked asked_;
  Shares asking_{kMostAsking};
  std::map<std::uint64_t, Line> lines_;
  std::uint64_t last_ = 0;
};

}  // namespace caisson::gate
