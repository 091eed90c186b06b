// The launcher's hand for what goes out: holds each workspace's sockets, keeps door and dialer running, and the opener where
// some list opens TLS, tells them what they serve, and passes on what they record. It keeps what clients set of their way
// out (settings.h).
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "launcher/common/base/json.h"
#include "launcher/common/base/loop.h"
#include "launcher/common/base/scm.h"
#include "launcher/common/capture/capture.h"
#include "launcher/common/telling/shares.h"
#include "launcher/common/telling/token_bucket.h"
#include "launcher/common/wire/gate_protocol.h"
#include "launcher/gate/asking.h"
#include "launcher/gate/commands.h"
#include "launcher/gate/connectors.h"
#include "launcher/gate/enter.h"
#include "launcher/gate/figures.h"
#include "launcher/gate/lines.h"
#include "launcher/gate/members.h"
#include "launcher/gate/recent.h"
#include "launcher/gate/service.h"
#include "launcher/gate/settings.h"
#include "launcher/gate/trust.h"

namespace caisson::gate {

class Gate {
 public:
  // up: the launcher's socket; run: its directory. The uids are as caisson-seal takes them.
  struct Uids {
    std::string door, dialer, opener;
  };
  Gate(Loop& loop, Fd up, const Uids& uids, const std::string& run);
  // Error: the launcher is gone, or sent what is no order. Then nothing is left to do.
  [[nodiscard]] Status hear();

 private:
  // A secret that is in no file: what a command has printed, or the operator has handed over. It is kept in a memory file, for
  // an opener or a dialer that is started anew.
  struct Held {
    Fd value;                   // none: none has come yet
    bool runs = false;          // its command
    bool used = false;          // since it came
    bool due = false;           // at its next use it is old
    std::int64_t begun_us = 0;  // when its command began last
    std::int64_t wait_us = 0;   // until it may begin again, where that is asked for
    Loop* loop = nullptr;       // of `again`, when it gets old
    Loop::TimerId again = 0;
    Held() = default;
    Held(const Held&) = delete;
    ~Held() {
      if (loop != nullptr) loop->cancel(again);
    }
  };
  struct Workspace {
    std::string name;
    std::uint32_t generation = 0;
    Fd list;
    Fd answer;           // of a launcher that waits
    Fd user_ns, net_ns;  // what it has made
    capture::Sockets sockets;
    std::unique_ptr<Connectors> connectors;  // in place of these, where sessions have no network namespace
    bool made = false;
    bool by_ports = false;   // there are no rules, but listeners at ports
    bool listening = false;  // and more of them are being made
    Settings settings;
    std::set<std::string> sessions;  // of which the door was told
    TokenBucket records{1000, 200};  // at once, and a second: beyond that they are counted
    TokenBucket alarms{200, 50};     // besides
    Recent recent;
    Asking asking;
    std::map<std::string, Held> held;
    bool granted = false;        // door and dialer were told of some
    Loop::TimerId next_end = 0;  // of one
    std::uint64_t dropped = 0;
    // Whose connection it is matters, and is not known: the door refuses everything.
    [[nodiscard]] bool unlike() const { return !settings.lists().alike && !sockets.owners && !connectors; }
  };
  using Entry = std::map<std::uint64_t, Workspace>::iterator;

  void open(const Order& order, std::string name, std::array<Fd, scm::kMaxFds> fds);
  void listen(std::uint64_t workspace, Fd builder, bool make);
  void await(std::uint64_t workspace);  // a door and a dialer that do not come
  void entered(std::uint64_t workspace, Entered made);
  void read_lists(Workspace& workspace);
  void warn_unlike(const Workspace& workspace);
  // ports.cc: where there are no rules
  void more_ports(const Entry& entry);
  void say_ports(const Entry& entry, const std::vector<capture::AtPort>& ports);
  [[nodiscard]] static bool listens_at(const Workspace& workspace, std::uint16_t port);
  // telling.cc: what processes are told of how a workspace stands. tell_...: at its turn, as it is then; say_...: now
  void tell(Service& to, std::string_view what, std::uint64_t workspace, std::function<void(Gate&, const Entry&)> say);
  [[nodiscard]] bool door_waits(std::uint64_t workspace) const;  // to be told all: what is new then is with it
  void tell_door(const Entry& entry);
  void say_door(const Entry& entry);
  void say_connector(const Entry& entry, const Connectors::One& one);
  void tell_lists(const Entry& entry);
  void say_lists(const Entry& entry);
  void tell_mappings(const Entry& entry);
  void say_mappings(const Entry& entry);
  [[nodiscard]] static bool opens(const Workspace& workspace);
  [[nodiscard]] static bool needs_opener(const Workspace& workspace);
  static void know(Workspace& workspace, const std::string& session);
  void tell_dialer(const Entry& entry);
  void say_dialer(const Entry& entry);
  void tell_upstreams(const Entry& entry);
  void say_upstreams(const Entry& entry);
  void tell_upstream(const Entry& entry, const std::string& domain);
  void say_upstream(const Entry& entry, const std::string& domain);
  [[nodiscard]] std::optional<egress::Upstream> upstream_of(const Entry& entry, const std::string& domain);
  // credentials.cc: secrets that are in no file
  void forget_unbound(Workspace& workspace);
  [[nodiscard]] Result<Fd> secret_now(const Entry& entry, const std::string& domain, const egress::Binding& binding);
  [[nodiscard]] Status credential_now(const Entry& entry, egress::Upstream& upstream);
  void print(const Entry& entry, const std::string& key, const std::string& command, std::uint32_t seconds);
  void printed(const Entry& entry, const std::string& key, const std::string& command, std::uint32_t seconds,
               Result<std::string> text);
  void renew_later(const Entry& of, const std::string& key, const std::string& command, std::uint32_t seconds);
  void unauthorized(const Entry& entry, const std::string& domain);
  void used(const Entry& entry, const json::Value& record);
  void hand_over(const Entry& entry, const Lines::From& from, const json::Value& request, const Lines::Reply& reply);
  // asked.cc: what clients want of their way out
  void asked(const Lines::From& from, const json::Value& request, const Lines::Reply& reply);
  void changed(const Entry& entry, const Settings::Changed& change);
  void diagnose(const Entry& entry, const json::Value& request, const Lines::Reply& reply);
  [[nodiscard]] json::Value health(const Workspace& workspace) const;
  void heard_inside(const Entry& entry, std::string_view text);
  void heard_probed(std::string_view text);
  void tell_opener(const Entry& entry);
  void say_opener(const Entry& entry);
  void look_at_secrets();
  void believe(std::string_view authority);
  void write_trust(const Workspace& workspace);
  void look_at_authorities();
  void join(Service& one, Service& other, egress::Order to_one, egress::Order to_other);
  void settle();  // answers who waits, once all that it asked for serves
  void answer(Entry entry, int error, const std::string& what);
  void failed(const std::string& workspace, const std::string& why);
  void started(Service& service);
  void heard(const Service& of, egress::Said said, std::uint64_t workspace, std::string_view text);
  // asks.cc: what sessions were refused and may be allowed
  void decide(const Entry& entry, const Lines::From& from, const std::string& op, const json::Value& request,
              const Lines::Reply& reply);
  void propose(Workspace& workspace, json::Value& record) const;
  void heard_used(const Entry& entry, std::string_view text);
  void tell_grants(const Entry& entry);
  void say_grants(Service& to, const Entry& entry);
  // told.cc: what of it goes on record, and what is counted
  void heard_record(const Service& of, const Entry& entry, egress::Said said, std::string_view text);
  void heard_figures(std::uint64_t workspace, egress::Said said, std::string_view text);
  void count(Workspace& workspace);
  void tell_count_later(const std::string& workspace);
  void tell_whose(const Entry& entry, std::string_view cgroup);
  [[nodiscard]] Service::Events events(Service& of);
  // False: the launcher did not take it.
  bool tell(Told told, std::string_view text);

  Loop& loop_;
  const Fd up_;
  const Members members_;
  const Result<Settings> at_start_ = Settings::at_start();
  std::map<std::uint64_t, Workspace> workspaces_;
  Figures figures_;
  Service door_, dialer_, opener_;
  Lines lines_;
  Commands commands_;
  std::map<std::uint32_t, std::function<void(const egress::DialAnswer&)>> probes_;  // that the dialer makes
  std::uint32_t last_probe_ = 0;
  Shares inside_{96};                          // connections to servers of workspaces that are being made
  Shares diagnoses_{96};                       // that wait for a connection
  bool running_ = false;                       // door and dialer were started
  bool opens_ = false;                         // and the opener
  std::map<std::string, std::string> stamps_;  // of the files with secrets, as they were read last
  Fd seed_;                                    // of its authority's key
  Trust trust_;                                // what sessions believe
  bool looks_ = false;                         // at files that it is made of, in a while
};

}  // namespace caisson::gate
