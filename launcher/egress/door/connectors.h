// Connections that are made on a process's behalf (common/egress/connector.h). A connector says from which port of the loopback a
// connection will come and where it is meant to lead; what comes from a port that none has named is closed, with an alarm.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/base/task.h"
#include "launcher/common/egress/connector.h"
#include "launcher/egress/door/dial_line.h"
#include "launcher/egress/door/listener.h"
#include "launcher/egress/door/records.h"
#include "launcher/egress/door/workspace.h"
#include "launcher/egress/loop/link.h"

namespace caisson::egress {

class Workspace;

class Connectors {
 public:
  explicit Connectors(Workspace& workspace);
  ~Connectors();
  Connectors(const Connectors&) = delete;
  Connectors& operator=(const Connectors&) = delete;
  [[nodiscard]] Status listen(Fd listener);
  // whose: "session domain".
  void add(std::string_view whose, Fd line);

 private:
  class One;
  struct Named {  // a connection that is to come
    One* by = nullptr;
    Member whose;
    Address to;
    std::uint16_t port = 0;
    std::uint32_t grant = 0;  // for this one connection
    std::optional<Dialed> dialed;
    std::optional<Counted> counted = {};
    std::int64_t until_us = 0;
  };
  void accepted(Fd client);
  void alarm(const Fd& client, std::string_view detail) const;
  // False: that port is named already.
  [[nodiscard]] bool name(std::uint16_t from, Named named);
  void forget(const One& one);
  void sweep();  // those that do not come

  Workspace& workspace_;
  std::unique_ptr<Listener> listener_;
  std::map<std::uint16_t, Named> named_;  // by the port that it comes from
  Poll::Timer sweeping_;
  std::list<std::unique_ptr<One>> all_;
};

}  // namespace caisson::egress
