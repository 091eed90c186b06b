#include "agent/services/mcp/mcp_sessions.h"

#include <algorithm>

#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

task<void> stop_copy(ServerInstance::Pointer copy) {
  co_return co_await ServerInstance::stop(std::move(copy), "its client has ended");
}

http::Budget::Share share_of(const std::shared_ptr<OutputBudget>& budget) {
  return budget ? budget->share() : http::Budget::Share();
}

void tell_listener(const Listener& listener, json::Value notification) {
  notification["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] = listener.request_id;
  listener.stream->push(notification);
}

}  // namespace

// --- one session ---

ClientSession::ClientSession(asio::any_io_executor e, std::shared_ptr<OutputBudget> budget, std::string session_id,
                             std::string session_owner)
    : executor(std::move(e)),
      id(std::move(session_id)),
      owner(std::move(session_owner)),
      notices(std::make_shared<MessageStream>(executor, "0", share_of(budget))),
      budget_(std::move(budget)) {}

ClientSession::~ClientSession() { end(); }

bool ClientSession::may_be_asked() const { return !mcp::askable(capabilities).empty(); }

MessageStreamPtr ClientSession::open_stream() {
  if (streams_.size() >= kMostStreams) {
    const auto done = std::ranges::find_if(streams_, [](const auto& one) { return one.second->over(); });
    if (done != streams_.end()) streams_.erase(done);
  }
  auto stream = std::make_shared<MessageStream>(executor, std::to_string(next_stream_++), share_of(budget_));
  if (streams_.size() < kMostStreams) streams_[stream->id] = stream;
  return stream;
}

void ClientSession::close_stream(const MessageStreamPtr& stream) {
  if (stream->over()) streams_.erase(stream->id);
}

MessageStreamPtr ClientSession::find_stream(const std::string& stream_id) const {
  if (stream_id.empty() || stream_id == notices->id) return notices;
  const auto found = streams_.find(stream_id);
  return found == streams_.end() ? nullptr : found->second;
}

asio::awaitable<mcp::Or<json::Value>> ClientSession::ask(std::shared_ptr<ClientSession> self, MessageStreamPtr stream,
                                                         std::string method, json::Value params) {
  const auto refused = [](std::string text) {
    return std::unexpected(mcp::Failure{.code = mcp::ErrorCode::internal, .text = std::move(text)});
  };
  if (!mcp::offers(self->capabilities, method, params)) co_return std::unexpected(mcp::not_offered(method));
  if (self->over || self->questions_.size() >= kMostQuestions) co_return refused("the client cannot be asked now");
  const std::string number = "caisson-" + std::to_string(self->next_question_++);
  auto exchange = std::make_shared<Exchange>(self->executor);
  self->questions_[number] = exchange;
  stream->push(mcp::request_message(number, method, std::move(params)));
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kAnswerWithin;
  while (!exchange->reply && !exchange->called_off)
    if (!co_await exchange->changed.wait_until(deadline)) break;
  self->questions_.erase(number);
  if (!exchange->reply) co_return refused("the client did not answer");
  co_return std::move(*exchange->reply);
}

void ClientSession::deliver(mcp::Message response) {
  const auto found = response.id.is_string() ? questions_.find(response.id.get_ref<const std::string&>()) : questions_.end();
  if (found == questions_.end() || found->second->reply) return;
  found->second->reply = mcp::outcome_of(std::move(response));
  found->second->changed.notify_all();
}

void ClientSession::call_off(const json::Value& request_id) {
  if (const auto found = under_way.find(json::dump(request_id)); found != under_way.end()) found->second->call_off();
}

void ClientSession::drop_copy(const std::string& server) {
  const auto found = copies.find(server);
  if (found == copies.end()) return;
  spawn(executor, "MCP server of a client", stop_copy(std::move(found->second)));
  copies.erase(found);
}

void ClientSession::drop_copies() {
  for (auto& [name, copy] : copies) spawn(executor, "MCP server of a client", stop_copy(std::move(copy)));
  copies.clear();
}

void ClientSession::end() {
  if (over) return;
  over = true;
  for (const auto& [number, question] : questions_) question->call_off();
  for (const auto& [number, request] : under_way) request->call_off();
  drop_copies();
  streams_.clear();
  notices->changed.notify_all();
}

// --- all of them ---

ClientSessionPtr McpSessions::begin(std::string owner, json::Value capabilities) {
  const auto own = std::ranges::count_if(sessions_, [&owner](const auto& one) { return one.second->owner == owner; });
  if (static_cast<std::size_t>(own) >= kMostOfOne) end_oldest(&owner);
  else if (sessions_.size() >= kMost) end_oldest(nullptr);
  auto session = std::make_shared<ClientSession>(executor_, budget_, sys::random_hex(16), std::move(owner));
  session->capabilities = std::move(capabilities);
  sessions_[session->id] = session;
  return session;
}

void McpSessions::end_oldest(const std::string* owner) {
  auto oldest = sessions_.end();
  for (auto one = sessions_.begin(); one != sessions_.end(); ++one) {
    if (owner != nullptr && one->second->owner != *owner) continue;
    if (oldest == sessions_.end() || one->second->used < oldest->second->used) oldest = one;
  }
  if (oldest == sessions_.end()) return;
  oldest->second->end();
  sessions_.erase(oldest);
}

ClientSessionPtr McpSessions::use(const std::string& id, const std::string& owner) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second->owner != owner) return nullptr;
  found->second->used = bridge::Clock::now();
  return found->second;
}

bool McpSessions::end(const std::string& id, const std::string& owner) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second->owner != owner) return false;
  found->second->end();
  sessions_.erase(found);
  return true;
}

void McpSessions::clear() {
  for (const auto& [id, session] : sessions_) session->end();
  sessions_.clear();
}

bool McpSessions::listen(const ListenerPtr& listener) {
  std::erase_if(listeners_, [](const auto& one) { return one.expired(); });
  if (listeners_.size() >= kMostListeners) return false;
  listeners_.push_back(listener);
  return true;
}

void McpSessions::tell(const json::Value& notification) {
  for (const auto& [id, session] : sessions_) session->notices->push(notification);
  for (const auto& one : listeners_)
    if (const ListenerPtr listener = one.lock();
        listener && listener->methods.contains(notification["method"].get<std::string>()))
      tell_listener(*listener, notification);
}

void McpSessions::tell_of(const std::string& uri, const json::Value& notification) {
  for (const auto& [id, session] : sessions_)
    if (session->subscriptions.contains(uri)) session->notices->push(notification);
  for (const auto& one : listeners_)
    if (const ListenerPtr listener = one.lock(); listener && listener->uris.contains(uri)) tell_listener(*listener, notification);
}

bool McpSessions::anyone_follows(const std::string& uri) const {
  const auto listens = [&uri](const auto& one) {
    const ListenerPtr listener = one.lock();
    return listener && listener->uris.contains(uri);
  };
  return std::ranges::any_of(sessions_, [&uri](const auto& one) { return one.second->subscriptions.contains(uri); }) ||
         std::ranges::any_of(listeners_, listens);
}

void McpSessions::drop(const std::string& server) const {
  for (const auto& [id, session] : sessions_) session->drop_copy(server);
}

bool McpSessions::has_room_for_copy(std::size_t most) {
  std::size_t there = 0;
  ClientSessionPtr oldest;
  for (const auto& [id, session] : sessions_) {
    there += session->copies.size();
    if (session->copies.empty() || !session->under_way.empty()) continue;
    if (!oldest || session->used < oldest->used) oldest = session;
  }
  if (there < most) return true;
  if (!oldest) return false;
  oldest->drop_copies();
  return true;
}

}  // namespace caisson::services
