// Door and dialer as children: sealed by caisson-seal, told what to do by messages, started again when they end. What they say is
// checked, because whoever takes one over speaks in its name: anything else than a message of egress_protocol.h is its end.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "launcher/common/base/loop.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/gate/orders.h"

namespace caisson::gate {

class Service {
 public:
  struct Events {
    std::function<void()> started;  // a new process, which knows nothing yet
    std::function<void()> ready;
    std::function<void(egress::Said said, std::uint64_t workspace, std::string_view text)> said;
    std::function<void(const std::string& record)> exited;  // a JSON object
    std::function<void(std::uint64_t workspace, const std::string& why)> unsent;
  };
  // uid: as caisson-seal takes it.
  Service(Loop& loop, const char* name, std::string uid, Events events)
      : loop_(loop), name_(name), uid_(std::move(uid)), events_(std::move(events)), orders_(loop, [this](const std::string& why) {
          end(why);
        }) {}
  Service(const Service&) = delete;

  void start();
  [[nodiscard]] const char* name() const { return name_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool ready() const { return ready_; }
  // Nothing, while it does not run: whoever follows is told all. One that does not take what it is sent (orders.h) is ended. A
  // text that is too long for a message is not sent, which is told: it would end whoever gets it, again and again.
  void send(egress::OrderHead order, const std::vector<int>& fds, std::string_view text = {});
  // As of Orders: `say` sends.
  void state(std::string what, std::function<void()> say) { orders_.state(std::move(what), std::move(say)); }
  [[nodiscard]] bool waits(const std::string& what) const { return orders_.waits(what); }

 private:
  void hear();
  void end(const std::string& why);
  void exited(const std::string& how);

  Loop& loop_;
  const char* const name_;
  const std::string uid_;
  const Events events_;
  Fd socket_, pidfd_;
  Orders orders_;
  pid_t pid_ = 0;
  bool ready_ = false;
  std::string why_;  // it was ended by us
  std::int64_t started_us_ = 0, delay_us_ = 0;
};

}  // namespace caisson::gate
