// SessionTable: the living sessions of one service by id, and the choice of the one to evict. S has `id`, `implicit` (made by a
// request that named none), `last_used` (steady clock) and busy() (a command runs or starts: never evicted).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/bridge/launcher_types.h"

namespace caisson::services {

template <class S>
class SessionTable {
 public:
  using Pointer = std::shared_ptr<S>;

  [[nodiscard]] Pointer find(const std::string& id) const {
    const auto it = sessions_.find(id);
    return it == sessions_.end() ? nullptr : it->second;
  }
  void insert(Pointer session) { sessions_[session->id] = session; }
  void erase(const std::string& id) { sessions_.erase(id); }
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }
  [[nodiscard]] std::size_t count_implicit() const {
    std::size_t count = 0;
    for (const auto& [id, session] : sessions_) count += session->implicit ? 1 : 0;
    return count;
  }
  [[nodiscard]] std::vector<Pointer> all() const {
    std::vector<Pointer> out;
    for (const auto& [id, session] : sessions_) out.push_back(session);
    return out;
  }
  // The idle session that was used longest ago, an implicit one if there is any. nullptr: every session is busy.
  [[nodiscard]] Pointer least_recent(bool implicit_only) const {
    Pointer best;
    for (const auto& [id, session] : sessions_) {
      if (session->busy() || (implicit_only && !session->implicit)) continue;
      if (!best || better_victim(*session, *best)) best = session;
    }
    return best;
  }
  [[nodiscard]] std::vector<Pointer> idle_since(bridge::Clock::time_point time) const {
    std::vector<Pointer> out;
    for (const auto& [id, session] : sessions_)
      if (!session->busy() && session->last_used < time) out.push_back(session);
    return out;
  }

 private:
  static bool better_victim(const S& a, const S& b) {
    if (a.implicit != b.implicit) return a.implicit;
    return a.last_used < b.last_used;
  }
  std::map<std::string, Pointer> sessions_;
};

// The limits that a new session must meet.
struct Room {
  std::size_t most;                       // sessions of the service
  std::string_view full;                  // ends the sentence "all N ", used when all are busy
  const std::size_t* creating = nullptr;  // sessions that are being made count as well
  std::size_t most_implicit = 0;          // not 0: the new session is implicit, and this is the limit of implicit ones
};

// Closes the sessions that were idle for longest until there is room. Errors: limit (all are busy), or the error of closing one.
template <class Service, class S>
[[nodiscard]] task<void> make_room(Service* service, const SessionTable<S>* table, Room room) {
  while (room.most_implicit != 0 && table->count_implicit() >= room.most_implicit) {
    const std::shared_ptr<S> victim = table->least_recent(true);
    if (!victim) break;  // all implicit ones are busy: the limit of all sessions decides
    CO_TRY(co_await service->close(victim, "evicted"));
  }
  while (table->size() + (room.creating != nullptr ? *room.creating : 0) >= room.most) {
    const std::shared_ptr<S> victim = table->least_recent(false);
    if (!victim) co_return fail(Code::limit, "all " + std::to_string(room.most) + " " + std::string(room.full));
    CO_TRY(co_await service->close(victim, "evicted"));
  }
  co_return Status{};
}

// A session's isolation is chosen when it is made and stays so.
[[nodiscard]] Status check_isolation(const bridge::SessionHandle& existing, std::optional<bool> wanted);

// A client's session id: 1 to 128 bytes that form one segment of a path: no '/', no control characters, not "." or "..".
[[nodiscard]] bool valid_session_id(const std::string& id);
// The same for a request that may omit it (""). Errors: invalid_argument, naming the member.
[[nodiscard]] Status check_session_id(const char* member, const std::string& id);

}  // namespace caisson::services
