// What the browser says. A renderer that was taken over writes answers and events of its own pages' sessions as it likes; which
// session they belong to is added by the browser process. So a message counts only for the session that it names.
#include <charconv>
#include <optional>

#include "agent/cdp/router.h"

namespace caisson::cdp {
namespace {

std::optional<std::int32_t> number_of(std::string_view id) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  return error == std::errc() && end == id.data() + id.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

void Router::from_browser(Buffer body) {
  const auto message = scan(body.view());
  if (!message) ++dropped_;
  else if (message->id.value.there()) answer_from_browser(std::move(body), *message);
  else event_from_browser(std::move(body), *message);
}

// `id`: nullptr for an event. The client's own session has no name for it.
void Router::forward(ClientId client, Buffer body, const Message& message, std::string_view session, const std::string* id) {
  std::vector<Change> changes;
  if (id != nullptr) changes.push_back({message.id.value, *id});
  if (message.session_id.value.there() && session == clients_[client].session) {
    const bool before = id != nullptr && message.session_id.whole.begin < message.id.value.begin;
    changes.insert(before ? changes.begin() : changes.end(), {message.session_id.whole, ""});
  }
  wires_.to_client(client, Outgoing(std::move(body), std::move(changes)));
}

void Router::answer_from_browser(Buffer body, const Message& message) {
  const std::string_view text = body.view();
  const auto number = number_of(message.id.value.of(text));
  const std::string_view session = unquoted(message.session_id.value.of(text));
  const bool from_root = !message.session_id.value.there();
  if (!number) return void(++dropped_);
  if (const auto own = own_.find(*number); own != own_.end()) {
    if (!from_root && own->second.session != session) return void(++dropped_);
    const auto asked = own_.extract(own);
    if (const auto it = sessions_.find(asked.mapped().session); it != sessions_.end()) it->second.unanswered.erase(*number);
    return asked.mapped().answered(message.result.value.of(text), message.error.value.of(text));
  }
  // Without a session the browser process itself speaks: the session ended before the command came.
  const auto it = pending_.find(*number);
  if (it == pending_.end() || !(from_root || it->second.session == session)) return void(++dropped_);
  const Pending pending = std::move(pending_.extract(it).mapped());
  sessions_.find(pending.session)->second.unanswered.erase(*number);
  --clients_[pending.client].unanswered;
  forward(pending.client, std::move(body), message, session, &pending.id);
}

void Router::lost_from_browser(std::string_view head, std::string_view tail) {
  ++dropped_;
  constexpr std::string_view kId = "{\"id\":", kSession = ",\"sessionId\":\"", kEnd = "\"}";
  if (!head.starts_with(kId) || !tail.ends_with(kEnd)) return;
  head = head.substr(kId.size());
  const auto number = number_of(head.substr(0, head.find(',')));
  tail.remove_suffix(kEnd.size());
  const auto at = tail.rfind(kSession);
  if (!number || at == std::string_view::npos) return;
  const auto it = pending_.find(*number);
  if (it == pending_.end() || it->second.session != tail.substr(at + kSession.size())) return;
  const Pending pending = std::move(pending_.extract(it).mapped());
  sessions_.find(pending.session)->second.unanswered.erase(*number);
  Client& client = clients_[pending.client];
  --client.unanswered;
  refuse(pending.client, pending.id, pending.session == client.session ? "" : pending.session, -32000,
         "the answer has more than 256 MiB");
}

void Router::event_from_browser(Buffer body, const Message& message) {
  const std::string_view text = body.view();
  if (!message.session_id.value.there()) return root_event(message, text);
  const auto session = sessions_.find(unquoted(message.session_id.value.of(text)));
  if (session == sessions_.end()) return void(++dropped_);  // it has just ended
  const ClientId client = session->second.client;
  const std::string name = session->first;
  if (!sessions_change(name, message, text)) return void(++dropped_);
  if (clients_[client].sessions > kMaxSessions) return let_go(client, "too many sessions");
  forward(client, std::move(body), message, name, nullptr);
}

// False: the event cannot be true. A session is its first owner's for as long as it lives, and ends where it began.
bool Router::sessions_change(const std::string& session, const Message& message, std::string_view text) {
  const std::string_view method = unquoted(message.method.value.of(text));
  const bool attached = method == "Target.attachedToTarget";
  if (!attached && method != "Target.detachedFromTarget") return true;
  const std::string_view named = inner_string(message.params.value.of(text), "sessionId");
  const auto it = sessions_.find(named);
  if (attached) {
    if (named.empty() || named.size() > kMaxSessionIdBytes || it != sessions_.end()) return false;
    add_session(sessions_.find(session)->second.client, named, session);
    const auto added = sessions_.find(named);
    added->second.waiting = inner_value(message.params.value.of(text), "waitingForDebugger") == "true";
    if (added->second.waiting && held_) let_run(added);
    return true;
  }
  if (it == sessions_.end() || it->second.parent != session) return false;
  forget(it, true);
  return true;
}

void Router::root_event(const Message& message, std::string_view text) {
  const std::string_view method = unquoted(message.method.value.of(text)), params = message.params.value.of(text);
  if (method == "Target.detachedFromTarget") {
    const auto it = sessions_.find(inner_string(params, "sessionId"));
    if (it == sessions_.end() || !it->second.parent.empty()) return;
    const ClientId client = it->second.client;
    forget(it, true);
    clients_.erase(client);
    return wires_.end(client, "its target is gone");
  }
  if (on_root_event) on_root_event(method, params);
}

}  // namespace caisson::cdp
