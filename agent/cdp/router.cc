#include "agent/cdp/router.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "agent/cdp/downloads.h"
#include "agent/cdp/methods.h"
#include "agent/cdp/text.h"

namespace caisson::cdp {
namespace {

// As Chromium answers (crdtp/dispatch.cc, DevToolsSession).
constexpr int kInvalidRequest = -32600, kServerError = -32000, kNoSession = -32001;
constexpr std::string_view kNoSessionText = "Session with given id not found.";

}  // namespace

std::int32_t Router::next_id() {
  do last_id_ = last_id_ == std::numeric_limits<std::int32_t>::max() ? 1 : last_id_ + 1;
  while (pending_.contains(last_id_) || own_.contains(last_id_));
  return last_id_;
}

std::int32_t Router::command(std::string_view session, std::string_view method, std::string_view params, Told answered) {
  const std::int32_t id = next_id();
  std::string text = "{\"id\":" + std::to_string(id) + ",\"method\":" + json_string(method);
  if (!params.empty()) text.append(",\"params\":").append(params);
  if (!session.empty()) text.append(",\"sessionId\":").append(json_string(session));
  own_.emplace(id, Own{std::string(session), std::move(answered)});
  wires_.to_browser(Outgoing::of(text + "}"));
  return id;
}

void Router::hold(bool on) {
  held_ = on;
  for (auto it = sessions_.begin(); on && it != sessions_.end(); ++it)
    if (it->second.waiting) let_run(it);
}

void Router::let_run(Sessions::iterator session) {
  session->second.waiting = false;
  session->second.unanswered.insert(command(session->first, kLetRun, "", [](std::string_view, std::string_view) {}));
}

void Router::ask(std::string_view method, std::string_view params, Answered answered) {
  ask_root(method, params, [answered = std::move(answered)](std::string_view result, std::string_view) {
    if (answered) answered(result);
  });
}

void Router::open(ClientId client, const std::string& target) {
  clients_.emplace(client, Client{});
  const auto answered = [this, client](std::string_view result, std::string_view error) { attached(client, result, error); };
  if (target.empty()) return ask_root("Target.attachToBrowserTarget", "", answered);
  ask_root("Target.attachToTarget", "{\"targetId\":" + json_string(target) + ",\"flatten\":true}", answered);
}

void Router::attached(ClientId client, std::string_view result, std::string_view error) {
  const std::string session(inner_string(result, "sessionId"));
  const auto it = clients_.find(client);
  if (it == clients_.end()) return session.empty() ? void() : detach(session);  // it did not wait
  if (session.empty() || session.size() > kMaxSessionIdBytes || sessions_.contains(session)) {
    clients_.erase(it);
    const std::string_view text = inner_string(error, "message");
    return wires_.opened(client, text.empty() ? "the browser gives no session" : std::string(text));
  }
  it->second.session = session;
  add_session(client, session, "");
  wires_.opened(client, "");
}

void Router::detach(std::string_view session) {
  ask_root("Target.detachFromTarget", "{\"sessionId\":" + json_string(session) + "}", [](std::string_view, std::string_view) {});
}

void Router::gone(ClientId client) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  const std::string session = it->second.session;
  if (const auto own = sessions_.find(session); own != sessions_.end()) {
    forget(own, false);
    detach(session);  // with all that it attached: Chromium ends those with it
  }
  clients_.erase(it);
}

void Router::let_go(ClientId client, std::string why) {
  gone(client);
  wires_.end(client, std::move(why));
}

void Router::add_session(ClientId client, std::string_view id, std::string_view parent) {
  sessions_.emplace(std::string(id), Session{client, std::string(parent), {}, {}, false});
  if (const auto above = sessions_.find(parent); above != sessions_.end()) above->second.children.emplace(id);
  ++clients_[client].sessions;
}

// With all below it. Chromium answers nothing that such sessions were asked; `tell`: we do, as it answers commands that come
// later.
void Router::forget(Sessions::iterator top, bool tell) {
  if (const auto above = sessions_.find(top->second.parent); above != sessions_.end()) above->second.children.erase(top->first);
  std::vector<std::string> left{top->first};
  while (!left.empty()) {
    const auto session = sessions_.extract(left.back());
    left.pop_back();
    if (session.empty()) continue;
    const Session& ended = session.mapped();
    Client& client = clients_[ended.client];
    --client.sessions;
    for (const std::int32_t id : ended.unanswered) {
      const auto pending = pending_.extract(id);
      if (pending.empty()) {
        own_.erase(id);
        continue;
      }
      --client.unanswered;
      if (tell) refuse(ended.client, pending.mapped().id, "", kNoSession, kNoSessionText);
    }
    left.insert(left.end(), ended.children.begin(), ended.children.end());
  }
}

void Router::answer(ClientId client, std::string_view id, std::string_view session, std::string_view member,
                    std::string_view body) {
  std::string text = "{";
  if (!id.empty()) text.append("\"id\":").append(id).append(",");
  text.append("\"").append(member).append("\":").append(body);
  if (!session.empty()) text.append(",\"sessionId\":").append(json_string(session));
  wires_.to_client(client, Outgoing::of(text + "}"));
}

void Router::refuse(ClientId client, std::string_view id, std::string_view session, int code, std::string_view text) {
  answer(client, id, session, "error", "{\"code\":" + std::to_string(code) + ",\"message\":" + json_string(text) + "}");
}

bool Router::decided(ClientId client, const Message& message, std::string_view text, std::string_view session) {
  const std::string_view id = message.id.value.of(text), method = unquoted(message.method.value.of(text));
  const MethodRow* row = decision_about(method);
  if (row == nullptr) return false;
  if (row->decision == Decision::leave) {
    answer(client, id, session, "result", "{}");
    let_go(client, "asked for " + std::string(row->name));
  } else {
    refuse(client, id, session, kServerError, std::string(method.substr(0, 64)) + " is not available: " + std::string(row->why));
  }
  return true;
}

void Router::from_client(ClientId client, Buffer body) {
  const auto known = clients_.find(client);
  if (known == clients_.end() || known->second.session.empty()) return;
  const std::string_view text = body.view();
  const auto message = scan(text);
  if (!message) return let_go(client, message.error().what);
  const std::string_view id = message->id.value.of(text), method = message->method.value.of(text);
  if (!message->id.value.there() || !is_integer(id))
    return refuse(client, "", "", kInvalidRequest, "Message must have integer 'id' property");
  if (!method.starts_with('"')) return refuse(client, id, "", kInvalidRequest, "Message must have string 'method' property");

  const std::string_view named = message->session_id.value.of(text);
  if (message->session_id.value.there() && !named.starts_with('"'))
    return refuse(client, id, "", kInvalidRequest, "Message may have string 'sessionId' property");
  const std::string& own = known->second.session;
  const std::string session(message->session_id.value.there() ? unquoted(named) : own);
  const auto target = sessions_.find(session);
  // Its own session has no name for the client, as in a connection of its own. Another's is answered as one that does not exist.
  if (target == sessions_.end() || target->second.client != client || (message->session_id.value.there() && session == own))
    return refuse(client, id, "", kNoSession, kNoSessionText);
  if (decided(client, *message, text, session == own ? "" : session)) return;
  if (const std::string led = with_downloads_in(downloads, text, *message); !led.empty()) {
    Buffer changed;
    return changed.append(led) ? from_client(client, std::move(changed)) : let_go(client, "no memory is left");
  }
  if (known->second.unanswered >= kMaxUnanswered) return let_go(client, "too many commands wait for an answer");

  if (unquoted(method) == kLetRun) target->second.waiting = false;
  const std::int32_t number = next_id();
  pending_.emplace(number, Pending{client, session, std::string(id)});
  target->second.unanswered.insert(number);
  ++known->second.unanswered;
  std::vector<Change> changes{{message->id.value, std::to_string(number)}};
  if (!message->session_id.value.there())
    changes.insert(changes.begin(), {{message->open + 1, message->open + 1}, "\"sessionId\":" + json_string(session) + ","});
  wires_.to_browser(Outgoing(std::move(body), std::move(changes)));
}

void Router::browser_ended(const std::string& why) {
  std::vector<ClientId> all;
  for (const auto& [client, state] : clients_) all.push_back(client);
  clients_.clear();
  sessions_.clear();
  pending_.clear();
  own_.clear();
  for (const ClientId client : all) wires_.end(client, why);
}

}  // namespace caisson::cdp
