// Router: who may say what to the browser, and who hears what it says. One pipe to Chromium, many clients, each with a session of
// its own (Target.attachToBrowserTarget or Target.attachToTarget on the root session) and with what its sessions attach. It
// changes ids and session ids and knows no descriptor: what it decides leaves through Wires. In caisson-cdp, between clients and
// a browser that are both hostile: a message that breaks a rule ends its client; one of the browser's is dropped and counted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "agent/cdp/outbox.h"
#include "agent/cdp/scan.h"

namespace caisson::cdp {

using ClientId = std::int64_t;  // never given twice

// None of these may call the router: the owner of the descriptors acts after the router's function has returned.
class Wires {
 public:
  virtual ~Wires() = default;
  virtual void to_browser(Outgoing message) = 0;
  virtual void to_client(ClientId client, Outgoing message) = 0;
  // The client's session is there (`why` empty), or cannot be had: then the client is not known to the router any more.
  virtual void opened(ClientId client, std::string why) = 0;
  // The router has let go of the client: to be closed once what was sent to it is written.
  virtual void end(ClientId client, std::string why) = 0;
};

class Router {
 public:
  // Of one client. A session costs the browser more than us; an unanswered command some 200 bytes.
  static constexpr std::size_t kMaxSessions = 16 * 1024, kMaxUnanswered = 16 * 1024;
  static constexpr std::size_t kMaxSessionIdBytes = 64;
  static constexpr std::string_view kLetRun = "Runtime.runIfWaitingForDebugger";

  explicit Router(Wires& wires) : wires_(wires) {}

  // target: "" for the browser, else the id of a page, which is at most 128 letters, digits, '-', '_' or '.'.
  void open(ClientId client, const std::string& target);
  void from_client(ClientId client, Buffer message);
  void gone(ClientId client);  // detaches its session; nothing for one that the router has let go of

  void from_browser(Buffer message);
  // A message that was too large to be held: if it answers a command, that is answered with an error.
  void lost_from_browser(std::string_view head, std::string_view tail);
  // The browser has ended: every client is let go.
  void browser_ended(const std::string& why);

  // While clients are held they cannot let go a page that waits for them (Target.setAutoAttach with waitForDebuggerOnStart): the
  // person at the screen would see new tabs that never load. So such pages are let go here, those that wait already as well.
  void hold(bool on);

  // A command of our own on the root session; `params` is JSON or "". `answered`: the result, or "" for an error.
  using Answered = std::function<void(std::string_view result)>;
  void ask(std::string_view method, std::string_view params, Answered answered);
  std::string downloads;  // the folder to which downloads.h leads them
  // Events of the root session: method and params.
  std::function<void(std::string_view method, std::string_view params)> on_root_event;

  [[nodiscard]] std::size_t clients() const { return clients_.size(); }
  [[nodiscard]] std::size_t sessions() const { return sessions_.size(); }
  [[nodiscard]] std::size_t unanswered() const { return pending_.size() + own_.size(); }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  struct Client {
    std::string session;  // "" until the browser has answered
    std::size_t sessions = 0, unanswered = 0;
  };
  struct Session {
    ClientId client = 0;
    std::string parent;  // "" for a client's own
    std::set<std::string, std::less<>> children;
    std::set<std::int32_t> unanswered;  // ours as well
    bool waiting = false;               // for its client, before its first script
  };
  struct Pending {
    ClientId client = 0;
    std::string session;
    std::string id;  // as the client wrote it
  };
  using Told = std::function<void(std::string_view result, std::string_view error)>;
  struct Own {
    std::string session;  // "": the root session
    Told answered;
  };

  using Sessions = std::map<std::string, Session, std::less<>>;

  [[nodiscard]] std::int32_t next_id();
  std::int32_t command(std::string_view session, std::string_view method, std::string_view params, Told answered);
  void ask_root(std::string_view method, std::string_view params, Told answered) {
    command("", method, params, std::move(answered));
  }
  void let_run(Sessions::iterator session);
  void attached(ClientId client, std::string_view result, std::string_view error);
  void detach(std::string_view session);
  void let_go(ClientId client, std::string why);
  void forget(Sessions::iterator top, bool tell);
  void add_session(ClientId client, std::string_view id, std::string_view parent);
  void answer(ClientId client, std::string_view id, std::string_view session, std::string_view member, std::string_view body);
  void refuse(ClientId client, std::string_view id, std::string_view session, int code, std::string_view text);
  [[nodiscard]] bool decided(ClientId client, const Message& message, std::string_view text, std::string_view session);
  void answer_from_browser(Buffer body, const Message& message);
  void event_from_browser(Buffer body, const Message& message);
  [[nodiscard]] bool sessions_change(const std::string& session, const Message& message, std::string_view text);
  void root_event(const Message& message, std::string_view text);
  void forward(ClientId client, Buffer body, const Message& message, std::string_view session, const std::string* id);

  Wires& wires_;
  std::unordered_map<ClientId, Client> clients_;
  Sessions sessions_;
  std::unordered_map<std::int32_t, Pending> pending_;
  std::unordered_map<std::int32_t, Own> own_;
  std::int32_t last_id_ = 0;
  std::uint64_t dropped_ = 0;
  bool held_ = false;
};

}  // namespace caisson::cdp
