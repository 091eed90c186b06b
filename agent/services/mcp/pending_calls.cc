#include "agent/services/mcp/pending_calls.h"

#include <algorithm>

#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

std::unexpected<mcp::Failure> not_now(std::string text) {
  return std::unexpected(mcp::Failure{.code = mcp::ErrorCode::internal, .text = std::move(text)});
}

task<void> stop_serving(ServerInstance::Pointer copy) {
  co_return co_await ServerInstance::stop(std::move(copy), "its client is gone");
}

}  // namespace

// --- one call ---

PendingCall::PendingCall(asio::any_io_executor executor, std::string of, ServerInstance::Pointer serving, std::string bound,
                         http::Budget::Share share)
    : owner(std::move(of)),
      binding(std::move(bound)),
      copy(std::move(serving)),
      exchange(std::make_shared<Exchange>(executor)),
      changed(executor),
      executor_(executor),
      share_(std::move(share)) {}

void PendingCall::attend(ExchangePtr request, MessageStreamPtr heard, json::Value request_meta, json::Value offered) {
  state.clear();
  changed.notify_all();
  waiter_ = std::move(request);
  stream = std::move(heard);
  meta = std::move(request_meta);
  capabilities_ = std::move(offered);
  // What was asked before the client stopped offering it is not asked any more.
  std::vector<std::string> refused;
  for (const auto& [key, question] : questions_)
    if (!mcp::offers(capabilities_, question.request["method"].get<std::string>(), question.request["params"]))
      refused.push_back(key);
  for (const std::string& key : refused) {
    const ExchangePtr reply = questions_.at(key).exchange;
    forget(key);
    reply->call_off();
  }
}

void PendingCall::leave(std::string new_state) {
  waiter_ = nullptr;
  stream = nullptr;
  meta = json::Value::object();
  state = std::move(new_state);
}

void PendingCall::tell() const {
  if (waiter_) waiter_->changed.notify_all();
}

void PendingCall::forget(const std::string& key) {
  const auto found = questions_.find(key);
  if (found == questions_.end()) return;
  bytes_ -= found->second.bytes;
  questions_.erase(found);
  if (!result) (void)share_.resize(bytes_);
}

asio::awaitable<mcp::Or<json::Value>> PendingCall::ask(std::shared_ptr<PendingCall> self, std::string method,
                                                       json::Value params) {
  if (!mcp::offers(self->capabilities_, method, params)) co_return std::unexpected(mcp::not_offered(method));
  for (const char* earlier : {"_meta", "task", "elicitationId"}) params.erase(earlier);  // which 2026-07-28 does not have
  json::Value request = {{"method", std::move(method)}, {"params", std::move(params)}};
  const std::size_t bytes = json::dump(request).size();
  if (self->over || self->questions_.size() >= kMostQuestions || self->bytes_ + bytes > kMostBytes ||
      self->share_.resize(self->bytes_ + bytes) != http::Room::granted)
    co_return not_now("the client cannot be asked that much now");
  self->bytes_ += bytes;
  const std::string key = "question-" + std::to_string(self->next_++);
  auto reply = std::make_shared<Exchange>(self->executor_);
  self->questions_[key] = {std::move(request), bytes, reply};
  self->tell();
  while (!reply->reply && !reply->called_off) (void)co_await reply->changed.wait_until(bridge::no_deadline());
  self->forget(key);
  if (!reply->reply) co_return not_now("the client did not answer");
  co_return std::move(*reply->reply);
}

json::Value PendingCall::questions() const {
  json::Value out = json::Value::object();
  for (const auto& [key, question] : questions_) out[key] = question.request;
  return out;
}

void PendingCall::answer(json::Value responses) {
  for (auto& [key, response] : responses.items()) {
    const auto found = questions_.find(key);
    if (found == questions_.end()) continue;
    response.erase("resultType");
    const ExchangePtr reply = found->second.exchange;
    forget(key);
    reply->reply = std::move(response);
    reply->changed.notify_all();
  }
}

void PendingCall::finish(mcp::Or<json::Value> outcome) {
  if (over) return;
  // Kept for the client that has not come back, if there is room.
  if (!state.empty() && outcome && share_.resize(json::dump(*outcome).size()) != http::Room::granted)
    outcome = not_now("the workspace has no room for the answer");
  result = std::move(outcome);
  for (const auto& [key, question] : questions_) question.exchange->call_off();
  tell();
}

void PendingCall::end() {
  if (over) return;
  over = true;
  state.clear();
  changed.notify_all();
  exchange->call_off();
  for (const auto& [key, question] : questions_) question.exchange->call_off();
  tell();
}

// --- all of them ---

PendingCalls::~PendingCalls() { life_->over = true; }

PendingCallPtr PendingCalls::serve(Held& held, std::string binding) {
  held.used = bridge::Clock::now();
  held.call = std::make_shared<PendingCall>(executor_, held.whose.owner, held.copy, std::move(binding),
                                            budget_ ? budget_->share() : http::Budget::Share());
  return held.call;
}

PendingCallPtr PendingCalls::reuse(const Whose& whose, const std::string& binding) {
  const auto found = std::ranges::find_if(held_, [&whose](const Held& one) { return !one.call && one.whose == whose; });
  return found == held_.end() ? nullptr : serve(*found, binding);
}

PendingCallPtr PendingCalls::begin(Whose whose, ServerInstance::Pointer copy, std::string binding) {
  held_.push_back({std::move(whose), std::move(copy), nullptr, {}});
  return serve(held_.back(), std::move(binding));
}

void PendingCalls::stop(Held& held) {
  if (held.call) held.call->end();
  if (held.copy) spawn(executor_, "MCP server of a client", stop_serving(std::move(held.copy)));
}

template <class Fits>
bool PendingCalls::drop_oldest(Fits fits) {
  auto oldest = held_.end();
  for (auto one = held_.begin(); one != held_.end(); ++one)
    if (fits(*one) && (oldest == held_.end() || one->used < oldest->used)) oldest = one;
  if (oldest == held_.end()) return false;
  stop(*oldest);
  held_.erase(oldest);
  return true;
}

bool PendingCalls::drop_idle() {
  return drop_oldest([](const Held& one) { return !one.call; });
}

bool PendingCalls::drop_of(const std::string& owner) {
  return drop_oldest([&owner](const Held& one) { return one.whose.owner == owner && !one.call; }) ||
         drop_oldest([&owner](const Held& one) { return one.whose.owner == owner && !one.call->state.empty(); });
}

bool PendingCalls::has_room_of(const std::string& owner) {
  const auto own = std::ranges::count_if(held_, [&owner](const Held& one) { return one.whose.owner == owner; });
  return static_cast<std::size_t>(own) < kMostOfOne || drop_of(owner);
}

task<void> PendingCalls::await_return(PendingCalls* self, std::shared_ptr<Life> life, PendingCallPtr call, std::string state) {
  const bridge::Clock::time_point deadline = bridge::Clock::now() + self->patience_;
  while (call->state == state)
    if (!co_await call->changed.wait_until(deadline)) break;
  if (!life->over && call->state == state) self->end(call);
  co_return Status{};
}

std::string PendingCalls::park(const PendingCallPtr& call) {
  call->leave(sys::random_hex(16));
  const auto held = std::ranges::find(held_, call, &Held::call);
  if (held != held_.end()) held->used = bridge::Clock::now();
  spawn(executor_, "MCP pending call", await_return(this, life_, call, call->state));
  return call->state;
}

PendingCallPtr PendingCalls::find(const std::string& state, const std::string& owner, const std::string& binding) const {
  const auto found = std::ranges::find_if(held_, [&](const Held& one) {
    return one.call && !state.empty() && one.call->state == state && one.call->owner == owner && one.call->binding == binding;
  });
  return found == held_.end() ? nullptr : found->call;
}

void PendingCalls::end(const PendingCallPtr& call) {
  const auto held = std::ranges::find(held_, call, &Held::call);
  if (held == held_.end()) return call->end();
  if (call->result) {
    held->call = nullptr;
    held->used = bridge::Clock::now();
    return call->end();
  }
  stop(*held);
  held_.erase(held);
}

void PendingCalls::drop(const std::string& server) {
  for (Held& held : held_)
    if (held.whose.server == server) stop(held);
  std::erase_if(held_, [&server](const Held& one) { return one.whose.server == server; });
}

void PendingCalls::clear() {
  for (Held& held : held_) stop(held);
  held_.clear();
}

}  // namespace caisson::services
