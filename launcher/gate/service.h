// Door and dialer as children: sealed by caisson-seal, told what to do by messages, started again when they end. What they say is
// checked, because whoever takes one over speaks in its name: anything else than a message of egress_protocol.h is its end.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "launcher/common/base/loop.h"
#include "launcher/common/egress/protocol.h"

namespace caisson::gate {

class Service {
 public:
  struct Events {
    std::function<void()> started;  // a new process, which knows nothing yet
    std::function<void()> ready;
    std::function<void(egress::Said said, std::uint64_t workspace, std::string_view text)> said;
    std::function<void(const std::string& record)> exited;  // a JSON object
  };
  // uid: as caisson-seal takes it.
  Service(Loop& loop, const char* name, std::string uid, Events events)
      : loop_(loop), name_(name), uid_(std::move(uid)), events_(std::move(events)) {}
  Service(const Service&) = delete;

  void start();
  [[nodiscard]] const char* name() const { return name_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool ready() const { return ready_; }
  // Nothing, while it does not run: whoever follows is told all. One that does not take what it is sent is ended.
  void send(egress::OrderHead order, const std::vector<int>& fds, std::string_view text = {});

 private:
  void hear();
  void end(const std::string& why);
  void exited(const std::string& how);

  Loop& loop_;
  const char* const name_;
  const std::string uid_;
  const Events events_;
  Fd socket_, pidfd_;
  pid_t pid_ = 0;
  bool ready_ = false;
  std::string why_;  // it was ended by us
  std::int64_t started_us_ = 0, delay_us_ = 0;
};

}  // namespace caisson::gate
