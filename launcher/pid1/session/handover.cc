// What outlives the agent: sessions and commands that were asked for with `keep`, copies of the commands' pipes and terminals,
// and one memory file in which the agent writes what only it knows. The next agent is given all of it. Nothing here is read:
// what an agent wrote is its successor's to judge, which may do no more with it than any agent may.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>

#include "launcher/pid1/session/sessions.h"

namespace caisson::session {
namespace {

constexpr std::uint64_t kNobody = ~0ULL;        // owner of what an agent has left and no other has taken up yet
constexpr std::int64_t kLeftUs = 60'000'000;    // an agent starts within ten seconds of the one before, or something is wrong
constexpr std::int64_t kMostBytes = 1LL << 30;  // as much as the agent may have besides
constexpr std::size_t kMostEnded = 256, kMostOwn = 2048, kMostAll = 8192;  // commands: of a session, of a workspace, of all

}  // namespace

Result<Fd> copy_of(const Fd& fd) {
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return sys_error("F_DUPFD_CLOEXEC");
  return copy;
}

// Its size is sealed: an agent that maps it cannot be ended by what another does to it, nor fill more than was agreed.
Result<Fd> Sessions::keep_file(std::int64_t bytes) {
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
bool Sessions::leave_behind(Entry& entry) const {
  if (!entry.keep || !keep_ || shut_down_ || entry.session->state() != State::running) return false;
  entry.owner = kNobody;
  entry.exec_ids.clear();  // numbers of requests that nobody waits for
  return true;
}

void Sessions::client_gone(std::uint64_t number, ipc::Role role) {
  const bool agent = role == ipc::Role::agent;
  for (auto& [id, entry] : entries_)
    if (entry->owner == number && !(agent && leave_behind(*entry))) entry->session->end("client_gone");
  if (agent) host_.loop.cancel(left_), left_ = host_.loop.after(kLeftUs, [this] { end_left(); });
}

void Sessions::end_left() {
  for (auto& [id, entry] : entries_)
    if (entry->owner == kNobody) entry->session->end("client_gone");
}

void Sessions::forget_kept() {
  keep_.reset();
  end_left();
}

// A workspace has a part of the room, so that it takes none of the others'.
bool Sessions::room_to_keep(const Entry& entry) const {
  std::size_t all = 0, own = 0;
  for (const auto& [id, other] : entries_) {
    all += other->kept.size();
    if (other->workspace == entry.workspace) own += other->kept.size();
  }
  return all < kMostAll && own < kMostOwn && entry.kept.size() < entry.session->policy().limits.execs + kMostEnded;
}

Entry* Sessions::adopt(std::uint64_t client) {
  for (auto& [id, entry] : entries_) {
    if (entry->owner != kNobody || entry->session->state() != State::running) continue;
    entry->owner = client;
    return entry.get();
  }
  took_up_ = true;
  host_.loop.cancel(left_);
  return nullptr;
}

}  // namespace caisson::session
