// What outlives the agent: sessions and commands that were asked for with `keep`, copies of the commands' pipes and terminals,
// and one memory file in which the agent writes what only it knows. The next agent is given all of it. Nothing here is read:
// what an agent wrote is its successor's to judge, which may do no more with it than any agent may.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>

#include "launcher/session/manager.h"
#include "launcher/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kMostBytes = 1LL << 30;                             // as much as the agent may have besides
constexpr std::size_t kMostEnded = 256, kMostOwn = 2048, kMostAll = 8192;  // commands: of a session, of a workspace, of all

Result<Fd> copy_of(const Fd& fd) {
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return sys_error("F_DUPFD_CLOEXEC");
  return copy;
}

}  // namespace

// Its size is sealed: an agent that maps it cannot be ended by what another does to it, nor fill more than was agreed.
Result<Fd> Manager::keep_file(std::int64_t bytes) {
  if (bytes < 4096 || bytes > kMostBytes)
    return fail(Code::invalid_argument, "'keep' must be 4096 to " + std::to_string(kMostBytes));
  if (!keep_) {
    Fd made(::memfd_create("caisson-keep", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!made || ::ftruncate(made.get(), bytes) != 0 ||
        ::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      return sys_error("the agent's memory file");
    keep_ = std::move(made);
  }
  return copy_of(keep_);
}

// False: it ends. What its client has not been told of is no session yet.
bool Manager::leave_behind(Entry& entry) const {
  if (!entry.keep || !keep_ || shut_down_ || entry.session->state() != State::running) return false;
  entry.owner = kNobody;
  entry.exec_ids.clear();  // numbers of requests that nobody waits for
  return true;
}

void Manager::end_left() {
  for (auto& [id, entry] : entries_)
    if (entry->owner == kNobody) entry->session->end("client_gone");
}

void Manager::forget_kept() {
  keep_.reset();
  end_left();
}

// Without: a command ends with its agent. A workspace has a part of the room, so that it takes none of the others'.
bool Manager::room_to_keep(const Entry& entry) const {
  std::size_t all = 0, own = 0;
  for (const auto& [id, other] : entries_) {
    all += other->kept.size();
    if (other->workspace == entry.workspace) own += other->kept.size();
  }
  return all < kMostAll && own < kMostOwn && entry.kept.size() < entry.session->policy().limits.execs + kMostEnded;
}

void Manager::keep_ends(Entry& entry, const Exec& exec) {
  if (!exec.keep) return;
  static constexpr const char* kNames[] = {"stdin", "stdout", "stderr"};
  Kept kept;
  for (std::size_t i = 0; i < exec.ends.size(); ++i) {
    auto copy = copy_of(exec.ends[i]);
    if (!copy) return;  // none is free: it ends with its agent
    kept.ends.emplace(exec.pty ? "pty" : kNames[i + 3 - exec.ends.size()], std::move(*copy));
  }
  entry.kept.emplace(exec.label, std::move(kept));
}

Result<json::Value> Manager::answer_adopt(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY(only(request.body, {}));
  if (clients_.at(c.number()).role != Role::agent) return fail(Code::permission_denied, "for the agent alone");
  for (auto& [id, entry] : entries_) {
    if (entry->owner != kNobody || entry->session->state() != State::running) continue;
    entry->owner = c.number();
    json::Value execs = json::Value::array();
    for (const auto& [label, kept] : entry->kept) execs.push_back(label);
    json::Value answer = entry->session->created();
    answer.update({{"domain", entry->domain},
                   {"workspace", entry->workspace->name},
                   {"isolation", entry->request.value("isolation", "")},
                   {"execs", std::move(execs)}});
    return answer;
  }
  took_up_ = true;
  loop_.cancel(left_);
  return json::Value::object();
}

Result<json::Value> Manager::answer_exec_adopt(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(Entry * entry, find(c, request.body, {"session", "exec"}));
  TRY_ASSIGN(const std::string label, need_string(request.body, "exec"));
  const auto kept = entry->kept.find(label);
  if (kept == entry->kept.end() || entry->owner != c.number())
    return fail(Code::not_found, "nothing is held of command " + quote(label));
  json::Value ends = json::Value::array();
  std::vector<Fd> fds;
  for (const auto& [name, fd] : kept->second.ends) {
    TRY_ASSIGN(fds.emplace_back(), copy_of(fd));
    ends.push_back(name);
  }
  c.reply(request.id, {{"exec", label}, {"ends", std::move(ends)}}, std::move(fds));
  if (!kept->second.exit.is_null()) c.event(kept->second.exit);
  return json::Value();
}

Result<json::Value> Manager::answer_exec_release(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(Entry * entry, find(c, request.body, {"session", "exec", "end"}));
  TRY_ASSIGN(const std::string label, need_string(request.body, "exec"));
  TRY_ASSIGN(const auto end, json::get_string(request.body, "end"));
  if (entry->owner != c.number()) return fail(Code::not_found, "no such session");
  const auto kept = entry->kept.find(label);
  if (kept == entry->kept.end()) return json::Value::object();
  if (end) kept->second.ends.erase(*end);
  else entry->kept.erase(kept);
  return json::Value::object();
}

Result<json::Value> Manager::answer_agent_restart(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY(only(request.body, {}));
  if (clients_.at(c.number()).role != Role::operator_) return fail(Code::permission_denied, "for the operator alone");
  if (!restart_agent_) return fail(Code::unavailable, "there is no agent");
  restart_agent_();
  return json::Value::object();
}

}  // namespace caisson::session
