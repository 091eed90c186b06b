// A workspace as the door sees it: its ways out, its listeners, the names it asked for, and its connections.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/capture/owner.h"
#include "launcher/egress/door/dial_line.h"
#include "launcher/egress/door/inside_line.h"
#include "launcher/egress/door/kept.h"
#include "launcher/egress/door/listener.h"
#include "launcher/egress/door/name_table.h"
#include "launcher/egress/door/open_line.h"
#include "launcher/egress/door/pipes.h"
#include "launcher/egress/door/records.h"
#include "launcher/egress/door/way.h"
#include "launcher/egress/list/grant.h"
#include "launcher/egress/list/lists.h"
#include "launcher/egress/list/mapping.h"
#include "launcher/egress/loop/launcher_line.h"

namespace caisson::egress {

class Connection;
class Connectors;
class NamesService;

// What all workspaces share.
struct House {
  Poll& poll;
  LauncherLine& launcher;
  DialLine& dialer;
  InsideLine& inside;
  OpenLine& opener;
  Pipes& pipes;
  std::size_t connections = 0, kept = 0, most_connections = 0;
};

// A connection as limits count it, from its admission to its end.
class Counted {
 public:
  Counted(House& house, std::shared_ptr<Way> way) : house_(house), way_(std::move(way)) {
    ++house_.connections, ++way_->connections;
  }
  Counted(Counted&&) = default;  // what is left counts no more
  ~Counted() {
    if (way_) --house_.connections, --way_->connections;
  }

 private:
  House& house_;  // outlives workspaces
  std::shared_ptr<Way> way_;
};

class Workspace {
 public:
  Workspace(House& house, std::uint64_t id);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Connections that are open go on with the list they were made by.
  void set_lists(const Lists& lists, std::uint32_t generation);
  // diag: that of Owners; none: sessions are not told apart, so connections are refused unless all lists are alike.
  [[nodiscard]] Status listen(Fd v4, Fd v6, Fd names, Fd diag);
  // And this one, a port of every address, where not all connections meet the first two.
  [[nodiscard]] Status listen_also(Fd listener);
  // Where connectors connect for sessions: what they connect to.
  [[nodiscard]] Status listen(Fd listener);
  [[nodiscard]] Connectors* connectors() { return connectors_.get(); }  // nullptr: there are none
  // The answer to what was asked of the launcher: text as of Order::member, after the cgroup. False: it is none.
  [[nodiscard]] bool set_member(std::uint64_t cgroup, std::string_view text);
  [[nodiscard]] NamesService* names_service() { return names_service_.get(); }  // nullptr: it does not listen yet
  void tell() { records.tell(connections_.size()); }
  void end_all();  // and tells the last of them

  // text: as of Order::member.
  [[nodiscard]] Member member_of(std::string_view text) const;
  // Whether one more may begin; none: yes.
  [[nodiscard]] Refusal admitted(const Member& whose);
  // grant: the one for one connection that this connection uses already; 0: none.
  void begin(Fd client, const Address& to, std::uint16_t port, const Member& whose, std::optional<Dialed> dialed,
             std::uint32_t grant = 0);

  // In place of those before; what was used stays used.
  void set_grants(Grants grants);
  // As permitted() of permitted.h.
  [[nodiscard]] bool permits(const List& list, const Member& whose, std::uint32_t& using_, const Host& host, std::uint16_t port,
                             Verdict& verdict, Facts& facts);

  // The name, if the address is one that a name got here.
  [[nodiscard]] std::optional<Host> host_at(const Address& address);
  void end(Connection& connection);  // once, by itself, when it is over; deleted at the end of the turn

  House& house;
  const std::uint64_t id;
  std::map<std::string, std::shared_ptr<Way>, std::less<>> ways;                  // by domain
  std::shared_ptr<const Mappings> mappings = std::make_shared<const Mappings>();  // a request goes on with the one it began with
  std::uint32_t generation = 0;
  Records records;
  NameTable names;
  Kept kept;

 private:
  struct Arrival {
    Fd client;
    Address address;
    std::uint16_t port = 0;
  };
  void accepted(Fd client);
  void identified(Arrival arrival, const Member& whose);
  void refuse(const Arrival& arrival, const Member& whose, Refusal refusal, std::string_view detail = {});

  Grants grants_;
  static constexpr std::size_t kMostSessions = 4096, kMostWaiting = 256;
  capture::Owners owners_{Fd()};
  bool apart_ = false, alike_ = false;                     // sessions are told apart; all lists are the same
  std::map<std::uint64_t, std::string> sessions_;          // by cgroup: text of Order::member
  std::map<std::uint64_t, std::vector<Arrival>> waiting_;  // for it
  std::size_t waiting_count_ = 0;
  std::list<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unique_ptr<NamesService> names_service_;
  std::unique_ptr<Connectors> connectors_;
};

}  // namespace caisson::egress
