// The table of sessions: some are kept ready for the domains in use, each is given to one client, put on record from the request
// to its end, and left for the next agent where that was asked for. A session ends with its client, its domain's reload (while
// it is ready) or the launcher; its uid is given back when nothing of it is left.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "launcher/pid1/session/clients.h"
#include "launcher/pid1/session/domains.h"
#include "launcher/pid1/session/entry.h"
#include "launcher/pid1/session/logs.h"
#include "launcher/pid1/session/uids.h"

namespace caisson::session {

class Sessions : private Events {
 public:
  using Table = std::map<std::string, std::unique_ptr<Entry>>;  // by id
  // settle: the workspace of that name has a session less.
  Sessions(const Host& host, const Clients& clients, Domains& domains, Uids& uids, Logs& logs,
           std::function<void(const std::string& workspace)> settle)
      : host_(host), clients_(clients), domains_(domains), uids_(uids), logs_(logs), settle_(std::move(settle)) {}

  [[nodiscard]] const Table& all() const { return entries_; }
  [[nodiscard]] Entry* find(const std::string& id) const;
  // Another client's session is answered as one that does not exist: ids tell nothing. Error: not_found.
  [[nodiscard]] Result<Entry*> find_for(std::uint64_t client, const std::string& id) const;
  [[nodiscard]] std::size_t count_in(const Workspace& workspace) const;

  // prepared, place: of that workspace, or made for this session alone. It belongs to nobody yet.
  [[nodiscard]] Result<Entry*> start(Workspace& workspace, const std::string& domain,
                                     std::shared_ptr<const confine::Template> prepared, const confine::Workspace& place);
  // One that was made ahead, and another is made in its place; nullptr: none is ready.
  [[nodiscard]] Entry* ready_entry(const std::string& domain);
  void refill_all();                          // of every domain that is in use
  [[nodiscard]] Status assign(Entry& entry);  // log, lifetime; the session runs from here on
  // Those that nobody was given; of this workspace and domain alone, if one is given.
  void end_ready(SessionEnd why, const Workspace* workspace = nullptr, std::string_view domain = "");
  bool poll_children();  // whether one is still to come (Loop::before_reap)
  // What the auditor tells of a session's refused calls. closed: nothing more comes about it.
  void on_denial(const std::string& id, audit::Event event, json::Value fields, bool closed);
  [[nodiscard]] const std::map<std::string, std::int64_t>& denied() const { return denied_; }
  // Ends every session; `done` is called once nothing is left. None is started from here on.
  void shut_down(std::function<void()> done);
  [[nodiscard]] bool ending() const { return shut_down_ != nullptr; }

  // handover.cc: what outlives the agent.
  void client_gone(std::uint64_t number, ipc::Role role);
  void agent_comes() { took_up_ = false; }
  // The memory file in which an agent leaves word for the next: one for all agents.
  [[nodiscard]] Result<Fd> keep_file(std::int64_t bytes);
  // The next of what was left, which is this client's now; nullptr: all is taken up.
  [[nodiscard]] Entry* adopt(std::uint64_t client);
  [[nodiscard]] bool took_up() const { return took_up_; }  // the last agent has asked for all that its predecessor left
  void forget_kept();                                      // nobody shall take it up
  // Without: a command ends with its agent.
  [[nodiscard]] bool room_to_keep(const Entry& entry) const;

 private:
  // lifecycle.cc
  [[nodiscard]] Status on_listener(Session& session, const Fd& fd, const std::string& refusals) override;
  void on_built(Session& session, Status status) override;
  void on_started(Session& session, Exec& exec, int pid) override;
  void on_failed(Session& session, Exec& exec, const Error& error, const std::string& step) override;
  void on_exited(Session& session, Exec& exec, const init::Reply& reply) override;
  void on_ended(Session& session) override;
  void finish(const std::string& id);
  void record_end(Entry& entry);

  void refill();
  void refill_later(const std::string& domain);
  [[nodiscard]] bool leave_behind(Entry& entry) const;
  void end_left();

  const Host& host_;
  const Clients& clients_;
  Domains& domains_;
  Uids& uids_;
  Logs& logs_;
  const std::function<void(const std::string&)> settle_;
  Table entries_;
  std::set<std::string> refill_;
  bool refill_scheduled_ = false;
  std::map<std::string, std::int64_t> denied_;  // calls that were refused since the start, by name
  std::function<void()> shut_down_;
  Fd keep_;  // never read nor mapped here
  bool took_up_ = false;
  Loop::TimerId left_ = 0;  // when what nobody takes up ends
};

[[nodiscard]] Result<Fd> copy_of(const Fd& fd);

}  // namespace caisson::session
