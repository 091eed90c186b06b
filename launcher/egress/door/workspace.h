// A workspace as the door sees it: its list, its listeners, the names it asked for, and its connections.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "launcher/egress/door/dial_line.h"
#include "launcher/egress/door/kept.h"
#include "launcher/egress/door/limits.h"
#include "launcher/egress/door/listener.h"
#include "launcher/egress/door/name_table.h"
#include "launcher/egress/door/pipes.h"
#include "launcher/egress/door/records.h"
#include "launcher/egress/list/list.h"
#include "launcher/egress/loop/launcher_line.h"

namespace caisson::egress {

class Connection;
class NamesService;

// What all workspaces share.
struct House {
  Poll& poll;
  LauncherLine& launcher;
  DialLine& dialer;
  Pipes& pipes;
  std::size_t connections = 0, kept = 0, most_connections = 0;
};

class Workspace {
 public:
  Workspace(House& house, std::uint64_t id);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Connections that are open go on with the list they were made by.
  void set_list(std::shared_ptr<const List> list, std::uint32_t generation);
  [[nodiscard]] Status listen(Fd v4, Fd v6, Fd names);
  [[nodiscard]] NamesService* names_service() { return names_service_.get(); }  // nullptr: it does not listen yet
  void tell() { records.tell(connections_.size()); }
  void end_all();  // and tells the last of them

  // The name, if the address is one that a name got here.
  [[nodiscard]] std::optional<Host> host_at(const Address& address);
  void end(Connection& connection);  // once, by itself, when it is over; deleted at the end of the turn

  House& house;
  const std::uint64_t id;
  std::shared_ptr<const List> list;
  std::uint32_t generation = 0;
  Records records;
  NameTable names;
  Kept kept;
  std::shared_ptr<ByteBudget> bytes;  // connections go on with the one they began with

 private:
  void accepted(Fd client);
  void refuse(Fd client, const Address& address, std::uint16_t port, Refusal refusal);

  std::optional<Admission> admission_;
  std::list<std::unique_ptr<Connection>> connections_;
  std::unique_ptr<Listener> v4_, v6_;
  std::unique_ptr<NamesService> names_service_;
};

}  // namespace caisson::egress
