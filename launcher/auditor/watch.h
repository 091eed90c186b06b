// One session's listener: answers its calls and says what is to be written about them. Knows neither the socket nor the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "launcher/auditor/budget.h"
#include "launcher/base/auditor_protocol.h"
#include "launcher/base/fd.h"

namespace caisson::auditor {

// Where records go. `room`: whether there is space for one more; where there is none, calls are counted.
struct Sink {
  std::function<bool()> room;
  std::function<void(Type, const std::string& session, std::string text)> put;
};

class Watch {
 public:
  Watch(std::string session, Fd listener, std::shared_ptr<const std::string> refusals)
      : session_(std::move(session)), listener_(std::move(listener)), refusals_(std::move(refusals)) {}

  [[nodiscard]] int fd() const { return listener_.get(); }
  [[nodiscard]] const std::string& session() const { return session_; }
  // One call, which must be waiting. False: the flood is too much, and the listener has been given up.
  [[nodiscard]] bool answer(std::int64_t now_us, int proc, TokenBucket& all, Sink& sink);
  // What was only counted since the last time.
  [[nodiscard]] bool counted() const { return !counts_.empty(); }
  void put_counts(std::int64_t now_us, Sink& sink);
  // The session is over: the last there is to say.
  void end(std::int64_t now_us, Sink& sink);

 private:
  [[nodiscard]] std::pair<std::string, std::string> rule(int nr) const;  // the call's name; why it is refused
  [[nodiscard]] std::string totals(const char* reason) const;

  const std::string session_;
  Fd listener_;
  const std::shared_ptr<const std::string> refusals_;
  Budget budget_;
  std::map<int, std::uint64_t> counts_;
  std::int64_t counted_since_us_ = 0;
  std::uint64_t recorded_ = 0, dropped_ = 0;
};

}  // namespace caisson::auditor
