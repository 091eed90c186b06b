// McpSessions: the sessions of MCP clients up to revision 2025-11-25, by the id that each names in Mcp-Session-Id. An id confers
// no rights: only the owner who began a session may use it. They are forgotten with the agent; a client that hears 404 begins
// anew (Streamable HTTP, "Session Management").
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/services/mcp/message_stream.h"
#include "agent/services/mcp/server_instance.h"

namespace caisson::services {

// One client of the hub.
class ClientSession {
 public:
  static constexpr std::size_t kMostStreams = 32, kMostQuestions = 64, kMostSubscriptions = 1024;
  static constexpr std::chrono::seconds kAnswerWithin{600};

  ClientSession(asio::any_io_executor executor, std::shared_ptr<OutputBudget> budget, std::string session_id,
                std::string session_owner);
  ~ClientSession();

  // A stream for the answer to one request; the oldest one that is over is forgotten for it.
  [[nodiscard]] MessageStreamPtr open_stream();
  // The client has all of it.
  void close_stream(const MessageStreamPtr& stream);
  // "": what is sent unasked.
  [[nodiscard]] MessageStreamPtr find_stream(const std::string& stream_id) const;
  // Asks the client something in a stream. Failures: its own; it does not answer, or the session is over.
  [[nodiscard]] static asio::awaitable<mcp::Or<json::Value>> ask(std::shared_ptr<ClientSession> self, MessageStreamPtr stream,
                                                                 std::string method, json::Value params);
  // The client's answer to such a question; one that nobody waits for is dropped.
  void deliver(mcp::Message response);
  void call_off(const json::Value& request_id);
  void drop_copy(const std::string& server);
  void drop_copies();
  // Lets go of its servers and whoever waits.
  void end();
  // Whether servers may ask it for something.
  [[nodiscard]] bool may_be_asked() const;

  const asio::any_io_executor executor;
  const std::string id, owner;  // id "": of one request alone
  bridge::Clock::time_point used = bridge::Clock::now();
  json::Value capabilities = json::Value::object();
  std::string level;  // of log messages, as in RFC 5424; "": all of them
  bool over = false;
  std::set<std::string> subscriptions;                    // addresses of resources
  std::map<std::string, ExchangePtr> under_way;           // its requests, by their ids as JSON
  std::map<std::string, ServerInstance::Pointer> copies;  // of servers, that serve it alone
  MessageStreamPtr notices;                               // what is sent unasked

 private:
  const std::shared_ptr<OutputBudget> budget_;
  std::map<std::string, MessageStreamPtr> streams_;
  std::map<std::string, ExchangePtr> questions_;
  std::uint64_t next_stream_ = 1, next_question_ = 1;
};
using ClientSessionPtr = std::shared_ptr<ClientSession>;

// A client of 2026-07-28 that listens for what comes unasked, by a request that lasts.
struct Listener {
  MessageStreamPtr stream;
  json::Value request_id;
  std::set<std::string> methods;  // notifications of changed lists
  std::set<std::string> uris;     // resources whose changes it follows
};
using ListenerPtr = std::shared_ptr<Listener>;

class McpSessions {
 public:
  static constexpr std::size_t kMostListeners = 256;
  // One more of an owner, or of all, ends the one of these that was unused for longest: who begins many ends its own.
  static constexpr std::size_t kMostOfOne = 128, kMost = 1024;

  // budget: pays for messages that clients have not read.
  McpSessions(asio::any_io_executor executor, std::shared_ptr<OutputBudget> budget)
      : executor_(std::move(executor)), budget_(std::move(budget)) {}
  // Its id is 32 hexadecimal digits.
  [[nodiscard]] ClientSessionPtr begin(std::string owner, json::Value capabilities);
  // nullptr: there is no such session of the owner's. It counts as used now.
  [[nodiscard]] ClientSessionPtr use(const std::string& id, const std::string& owner);
  [[nodiscard]] bool end(const std::string& id, const std::string& owner);
  void clear();
  // For as long as the caller holds the listener. False: there are too many.
  [[nodiscard]] bool listen(const ListenerPtr& listener);
  // To all of them and all listeners, unasked.
  void tell(const json::Value& notification);
  // To those that asked to hear of the resource.
  void tell_of(const std::string& uri, const json::Value& notification);
  [[nodiscard]] bool anyone_follows(const std::string& uri) const;
  // Ends their copies of a server.
  void drop(const std::string& server) const;
  // Whether one more copy of a server may be, of this many. If all are there, the session that was unused for longest, and has no
  // request under way, loses its copies.
  [[nodiscard]] bool has_room_for_copy(std::size_t most);

 private:
  // Of one owner; nullptr: of all.
  void end_oldest(const std::string* owner);

  asio::any_io_executor executor_;
  std::shared_ptr<OutputBudget> budget_;
  std::map<std::string, ClientSessionPtr> sessions_;
  std::vector<std::weak_ptr<Listener>> listeners_;
};

}  // namespace caisson::services
