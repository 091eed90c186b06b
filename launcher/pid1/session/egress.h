// The launcher's side of caisson-gate (launcher/gate), which makes the way out of workspaces and keeps door and dialer running:
// starts it for the first workspace that has one, tells it what workspaces get, writes what it tells to the launcher's log. When
// it ends it is started again, and told all again.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>

#include "launcher/common/audit/log.h"
#include "launcher/common/base/task.h"
#include "launcher/common/wire/gate_protocol.h"
#include "launcher/pid1/session/settings.h"
#include "launcher/pid1/session/workspace.h"

namespace caisson::session {

class Egress {
 public:
  using Record = std::function<void(audit::Event event, json::Value fields)>;
  Egress(Loop& loop, const confine::Features& features, const Settings& settings, Record record)
      : loop_(loop), features_(features), settings_(settings), record_(std::move(record)) {}
  ~Egress();
  Egress(const Egress&) = delete;

  // The workspace gets a second network namespace (place.out_ns), of whose sessions these lists say where they may connect to. In
  // the workspace's turn; once.
  [[nodiscard]] Task<Status> open(const Workspace& workspace, std::string list);
  // Other policies are in force: these are the lists of those that go out; none: nothing does any more.
  void renew(const std::string& list);
  void close(const Workspace& workspace);
  // A line to caisson-gate, for what clients set of the workspace's way out (common/tables/way_ops.h), or for the operator.
  [[nodiscard]] Result<Fd> line(const Workspace& workspace, bool for_operator) const;

 private:
  struct Way {
    std::uint64_t number;
    std::uint32_t generation;
    std::string list;
  };
  [[nodiscard]] Status launch();
  [[nodiscard]] Status send(gate::Op op, const Workspace& of, const Way& way, std::initializer_list<int> fds) const;
  void hear();
  void restart_later();

  Loop& loop_;
  const confine::Features& features_;
  const Settings& settings_;
  const Record record_;
  Fd socket_, pidfd_;
  pid_t pid_ = 0;
  std::int64_t started_us_ = 0;
  std::uint64_t last_number_ = 0;
  std::uint32_t generation_ = 0;
  std::map<const Workspace*, Way> ways_;
};

}  // namespace caisson::session
