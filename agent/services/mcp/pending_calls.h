// PendingCalls: requests of clients of 2026-07-28 to servers of earlier revisions, which ask while they carry a request out. Such
// a client is asked by the answer to its request: the questions, and a state with which it repeats the request and brings the
// responses (MCP, "Multi Round-Trip Requests"). Meanwhile the request stays under way at the server. It has a copy of the server
// to itself, so that a question is of no other request; the copy serves later requests of the same credential.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/services/common/roster.h"
#include "agent/services/mcp/message_stream.h"
#include "agent/services/mcp/server_instance.h"

namespace caisson::services {

class PendingCall {
 public:
  static constexpr std::size_t kMostQuestions = 16, kMostBytes = 256 * 1024;

  // bound: what a request must equal to go on with it. share: pays for what waits for the client.
  PendingCall(asio::any_io_executor executor, std::string of, ServerInstance::Pointer serving, std::string bound,
              http::Budget::Share share);

  // A request of the client waits from now on, or none does, until one has that state.
  void attend(ExchangePtr request, MessageStreamPtr heard, json::Value request_meta, json::Value offered);
  void leave(std::string new_state);
  // A question of the server's. Failures: the client does not offer that, too much is asked, or it does not come back.
  [[nodiscard]] static asio::awaitable<mcp::Or<json::Value>> ask(std::shared_ptr<PendingCall> self, std::string method,
                                                                 json::Value params);
  [[nodiscard]] bool asks() const { return !questions_.empty(); }
  // {key: {method, params}} of the questions that wait.
  [[nodiscard]] json::Value questions() const;
  // The client's responses by those keys; what nobody asked is dropped.
  void answer(json::Value responses);
  // The server has carried the request out.
  void finish(mcp::Or<json::Value> outcome);
  // Whoever waits hears that nothing more comes.
  void end();

  const std::string owner, binding;
  const ServerInstance::Pointer copy;
  const ExchangePtr exchange;  // with the server
  std::optional<mcp::Or<json::Value>> result;
  bool over = false;
  std::string state;                         // by which the client goes on; empty: a request of its waits
  bridge::Notifier changed;                  // the state
  MessageStreamPtr stream;                   // hears what the server says meanwhile; nullptr: nobody does
  json::Value meta = json::Value::object();  // of the request that waits

 private:
  struct Question {
    json::Value request;
    std::size_t bytes;
    ExchangePtr exchange;
  };
  void tell() const;
  void forget(const std::string& key);

  const asio::any_io_executor executor_;
  json::Value capabilities_ = json::Value::object();
  ExchangePtr waiter_;
  std::map<std::string, Question> questions_;
  std::size_t bytes_ = 0;
  http::Budget::Share share_;
  std::uint64_t next_ = 1;
};
using PendingCallPtr = std::shared_ptr<PendingCall>;

class PendingCalls {
 public:
  static constexpr std::size_t kMostOfOne = 8;
  static constexpr std::chrono::seconds kPatience{600};  // for the client to come back

  PendingCalls(asio::any_io_executor executor, std::shared_ptr<OutputBudget> budget,
               std::chrono::milliseconds patience = kPatience)
      : executor_(std::move(executor)),
        budget_(std::move(budget)),
        patience_(patience),
        life_(std::make_shared<Life>(executor_)) {}
  ~PendingCalls();

  // The one server and client that a copy serves.
  struct Whose {
    std::string server, owner;
    json::Value capabilities;
    bool operator==(const Whose&) const = default;
  };
  // Uses an idle copy again; nullptr: every copy is in use.
  [[nodiscard]] PendingCallPtr reuse(const Whose& whose, const std::string& binding);
  [[nodiscard]] PendingCallPtr begin(Whose whose, ServerInstance::Pointer copy, std::string binding);
  // Copies, and how many of them one owner has.
  [[nodiscard]] std::size_t size() const { return held_.size(); }
  // Whether the owner may have one more. If it has all, its oldest one that nothing waits for ends.
  [[nodiscard]] bool has_room_of(const std::string& owner);
  // Ends the copy that served nothing for longest.
  [[nodiscard]] bool drop_idle();
  // Ends one of the owner's: that, or the call to which it did not come back for longest.
  [[nodiscard]] bool drop_of(const std::string& owner);

  // The client is told the questions. Its new state: 32 hexadecimal digits, valid once and for the time of kPatience.
  [[nodiscard]] std::string park(const PendingCallPtr& call);
  // nullptr: no call of the owner's has that state and binding.
  [[nodiscard]] PendingCallPtr find(const std::string& state, const std::string& owner, const std::string& binding) const;
  // A call whose server has not answered takes its copy with it, which may still ask.
  void end(const PendingCallPtr& call);
  // Of a server that is gone.
  void drop(const std::string& server);
  void clear();

 private:
  struct Held {
    Whose whose;
    ServerInstance::Pointer copy;
    PendingCallPtr call;  // nullptr: it serves nothing
    bridge::Clock::time_point used;
  };
  static task<void> await_return(PendingCalls* self, std::shared_ptr<Life> life, PendingCallPtr call, std::string state);
  PendingCallPtr serve(Held& held, std::string binding);
  void stop(Held& held);
  template <class Fits>
  [[nodiscard]] bool drop_oldest(Fits fits);

  asio::any_io_executor executor_;
  std::shared_ptr<OutputBudget> budget_;
  std::chrono::milliseconds patience_;
  std::vector<Held> held_;
  const std::shared_ptr<Life> life_;
};

}  // namespace caisson::services
