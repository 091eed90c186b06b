// The IPC operations between a client (the agent, or the CLI as root) and the launcher: names, members of requests, the state of
// a connection in which each is permitted, and the client. One JSON object per SOCK_SEQPACKET message, at most kMaxMessage bytes
// and kMaxFds descriptors. docs: launcher/README.md, "Protocol".
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace caisson::ipc {

inline constexpr std::size_t kMaxMessage = 64 * 1024;
inline constexpr std::size_t kMaxFds = 4;
inline constexpr std::size_t kMaxNote = 2048;
inline constexpr int kProtocolVersion = 1;

enum class State { greeting, open };
enum class Role { agent, operator_ };

// With their answers.
enum class Op {
  hello,              // -> {version, tier, domains, home, workspace} + fd, where keep is given; first, once
  session_create,     // -> {session, tier, tools, steps_us}, once it is verified
  session_exec,       // -> {exec} + fds
  exec_signal,        // -> {}
  session_note,       // -> {}: an object of at most kMaxNote bytes is on record in the session's log, as the agent's word
  session_adopt,      // -> {session, ..., execs}: one that an agent before has left; {}: there is none any more
  exec_adopt,         // -> {exec, ends} + fds; then the event of its end, if it has come
  exec_release,       // -> {}: what is held of it for a later agent, or one end of it, is let go
  session_stat,       // -> {session, domain, state, processes, memory_bytes, cpu_us, ...}
  session_report,     // -> {report}
  attest,             // -> {token, key, statement}: a signed statement of the boot, or of one session
  audit_list,         // -> {sessions: [{session, running}]}: logs there are, the newest first
  audit_open,         // -> {running} + fd of that segment of its log, read only; 0: the last one
  session_list,       // -> {sessions: [...], next?}: in order of id, each with its `top` largest processes
  session_destroy,    // -> {} once nothing of the session is left
  workspace_create,   // -> {workspace: {name, uid, disk, ...}}
  workspace_list,     // -> {workspaces: [...], denied: {call: number}}
  workspace_destroy,  // -> {} once nothing of it is left: sessions, files, namespaces, cgroup
  workspace_pause,    // -> {state} once nothing in it runs any more; it starts nothing until it is resumed
  workspace_resume,   // -> {state} once all goes on
  workspace_connect,  // -> {} + fd: connected to that port of the workspace's loopback, which its sessions listen on; port 0: a
                      // line to what makes its way out (common/tables/way_ops.h). listen: a listening socket in each of its
                      // network namespaces, that of the way out last; at that port, or at another where it is taken
  policy,             // -> {digest, preset, domains, refused}, or {policy}: all of one domain
  policy_reload,      // -> {accepted, old, new, problems}: as SIGHUP; a client may ask once a second
  agent_restart,      // -> {}: the operator's; the agent ends, and another takes up what it served
};

struct OpRow {
  Op op;
  std::string_view name;
  std::string_view members = {};  // of a request, besides id and op; "!": required
  State permitted = State::open;
  std::optional<Role> only = {};  // for nobody else
};

inline constexpr OpRow kOps[] = {
    {Op::hello, "hello", "!protocol keep", State::greeting},
    {Op::session_create, "session_create", "!domain label narrow workspace isolation keep"},
    {Op::session_exec, "session_exec", "!session !argv cwd env stdin pty hard_timeout_ms keep"},
    {Op::exec_signal, "exec_signal", "!session !exec !signal"},
    {Op::session_note, "session_note", "!session !note", State::open, Role::agent},
    {Op::session_adopt, "session_adopt", "", State::open, Role::agent},
    {Op::exec_adopt, "exec_adopt", "!session !exec"},
    {Op::exec_release, "exec_release", "!session !exec end"},
    {Op::session_stat, "session_stat", "!session"},
    {Op::session_report, "session_report", "!session"},
    {Op::attest, "attest", "nonce session"},
    {Op::audit_list, "audit_list", "before limit"},
    {Op::audit_open, "audit_open", "!session segment"},
    {Op::session_list, "session_list", "after top"},
    {Op::session_destroy, "session_destroy", "!session reason"},
    {Op::workspace_create, "workspace_create", "!name disk_bytes idle_seconds persistent"},
    {Op::workspace_list, "workspace_list", ""},
    {Op::workspace_destroy, "workspace_destroy", "!workspace reason"},
    {Op::workspace_pause, "workspace_pause", "!workspace"},
    {Op::workspace_resume, "workspace_resume", "!workspace"},
    {Op::workspace_connect, "workspace_connect", "!workspace !port listen"},
    {Op::policy, "policy", "domain"},
    {Op::policy_reload, "policy_reload", ""},
    {Op::agent_restart, "agent_restart", "", State::open, Role::operator_},
};
// Clients find a name by its op.
static_assert(std::ranges::is_sorted(kOps, {}, &OpRow::op) && kOps[std::size(kOps) - 1].op == Op::agent_restart);

[[nodiscard]] constexpr const OpRow* find_op(std::string_view name) {
  const auto row = std::ranges::find(kOps, name, &OpRow::name);
  return row == std::end(kOps) ? nullptr : row;
}

}  // namespace caisson::ipc
