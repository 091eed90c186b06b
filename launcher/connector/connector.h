// Answers what the session's filter tells of: `socket` of TCP and every `connect`, by itself or after the door has said what may
// be; what the filter refuses goes to the auditor, and waits for its word.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <map>

#include "launcher/common/base/fd.h"
#include "launcher/common/egress/connector.h"
#include "launcher/connector/sockets.h"

namespace caisson::connector {

class Connector {
 public:
  // auditor: where refused calls are told.
  Connector(Fd listener, Fd door, Fd auditor, Fd proc)
      : listener_(std::move(listener)), door_(std::move(door)), auditor_(std::move(auditor)), proc_(std::move(proc)) {}
  // The first message of the door's line; false: it is none.
  [[nodiscard]] bool greeted();

  [[nodiscard]] int listener() const { return listener_.get(); }
  [[nodiscard]] int door() const { return door_.get(); }
  [[nodiscard]] int auditor() const { return auditor_.get(); }
  void call(std::int64_t now_us);             // one call
  void door_said();                           // one answer
  void auditor_said();                        // one answer
  void give_up(std::int64_t now_us);          // whoever has waited too long is told so
  [[nodiscard]] std::int64_t due_us() const;  // when that is to be looked for; 0: nobody waits

 private:
  struct Waiting {
    std::uint64_t call = 0;  // the notification
    Kept socket;
    std::uint16_t from = 0;
    std::int64_t until_us = 0;
  };
  void make(const seccomp_notif& call);
  void connect(const seccomp_notif& call, std::int64_t now_us);
  void connect(const seccomp_notif& call, std::uint64_t inode, egress::Ask ask, std::int64_t now_us);
  void answered(Waiting waiting, int error);
  void withdraw(std::uint16_t from);
  bool tell(const egress::Ask& ask);
  void fail_all();
  void refused(const seccomp_notif& call);

  Fd listener_, door_, auditor_;
  const Fd proc_;
  std::uint16_t port_ = 0;
  Sockets sockets_;
  std::map<std::uint32_t, Waiting> waiting_;
  std::uint32_t last_ = 0;
};

}  // namespace caisson::connector
