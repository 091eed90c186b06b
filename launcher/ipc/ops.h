// The IPC operations between a client (the agent, or the CLI as root) and the launcher: names, and in which state of a
// connection each is permitted. One JSON object per SOCK_SEQPACKET message, at most kMaxMessage bytes and kMaxFds
// descriptors. docs: launcher/README.md, "Protocol".
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace caisson::ipc {

inline constexpr std::size_t kMaxMessage = 64 * 1024;
inline constexpr std::size_t kMaxFds = 4;
inline constexpr int kProtocolVersion = 1;

enum class State : unsigned { greeting = 1, open = 2 };

enum class Op {
  hello,              // {protocol, keep?} -> {version, tier, domains, home, workspace} + fd, where keep is given; first, once
  session_create,     // {domain, label?, narrow?, workspace?, isolation?, keep?} -> {session, tier, tools}, once it is verified
  session_exec,       // {session, argv, cwd?, env?, pty?{cols,rows}, stdin?, hard_timeout_ms?, keep?} -> {exec} + fds
  exec_signal,        // {session, exec, signal} -> {}
  session_adopt,      // {} -> {session, ..., execs}: one that an agent before has left; {}: there is none any more
  exec_adopt,         // {session, exec} -> {exec, ends} + fds; then the event of its end, if it has come
  exec_release,       // {session, exec, end?} -> {}: what is held of it for a later agent, or one end of it, is let go
  session_stat,       // {session} -> {session, domain, state, processes, memory_bytes, cpu_us, ...}
  session_report,     // {session} -> {report}
  attest,             // {session?, nonce?} -> {token, key, statement}: a signed statement of the boot, or of one session
  audit_list,         // {before?, limit?} -> {sessions: [{session, running}]}: logs there are, the newest first
  audit_open,         // {session, segment?} -> {running} + fd of that segment of its log, read only; 0: the last one
  session_list,       // {after?, top?} -> {sessions: [...], next?}: in order of id, each with its `top` largest processes
  session_destroy,    // {session, reason?} -> {} once nothing of the session is left
  workspace_create,   // {name, disk_bytes?, idle_seconds?, persistent?} -> {workspace: {name, uid, disk, ...}}
  workspace_list,     // {} -> {workspaces: [...]}
  workspace_destroy,  // {workspace, reason?} -> {} once nothing of it is left: sessions, files, namespaces, cgroup
  workspace_pause,    // {workspace} -> {state} once nothing in it runs any more; it starts nothing until it is resumed
  workspace_resume,   // {workspace} -> {state} once all goes on
  policy,             // {domain?} -> {digest, preset, domains, refused}, or {policy}: all of one domain
  policy_reload,      // {} -> {accepted, old, new, problems}: as SIGHUP; a client may ask once a second
  agent_restart,      // {} -> {}: the operator's; the agent ends, and another takes up what it served
};

struct OpRow {
  Op op;
  std::string_view name;
  unsigned permitted;  // mask of State
};

inline constexpr OpRow kOps[] = {
    {Op::hello, "hello", static_cast<unsigned>(State::greeting)},
    {Op::session_create, "session_create", static_cast<unsigned>(State::open)},
    {Op::session_exec, "session_exec", static_cast<unsigned>(State::open)},
    {Op::exec_signal, "exec_signal", static_cast<unsigned>(State::open)},
    {Op::session_adopt, "session_adopt", static_cast<unsigned>(State::open)},
    {Op::exec_adopt, "exec_adopt", static_cast<unsigned>(State::open)},
    {Op::exec_release, "exec_release", static_cast<unsigned>(State::open)},
    {Op::session_stat, "session_stat", static_cast<unsigned>(State::open)},
    {Op::session_report, "session_report", static_cast<unsigned>(State::open)},
    {Op::attest, "attest", static_cast<unsigned>(State::open)},
    {Op::audit_list, "audit_list", static_cast<unsigned>(State::open)},
    {Op::audit_open, "audit_open", static_cast<unsigned>(State::open)},
    {Op::session_list, "session_list", static_cast<unsigned>(State::open)},
    {Op::session_destroy, "session_destroy", static_cast<unsigned>(State::open)},
    {Op::workspace_create, "workspace_create", static_cast<unsigned>(State::open)},
    {Op::workspace_list, "workspace_list", static_cast<unsigned>(State::open)},
    {Op::workspace_destroy, "workspace_destroy", static_cast<unsigned>(State::open)},
    {Op::workspace_pause, "workspace_pause", static_cast<unsigned>(State::open)},
    {Op::workspace_resume, "workspace_resume", static_cast<unsigned>(State::open)},
    {Op::policy, "policy", static_cast<unsigned>(State::open)},
    {Op::policy_reload, "policy_reload", static_cast<unsigned>(State::open)},
    {Op::agent_restart, "agent_restart", static_cast<unsigned>(State::open)},
};
// Clients find a name by its op.
static_assert(std::ranges::is_sorted(kOps, {}, &OpRow::op) && kOps[std::size(kOps) - 1].op == Op::agent_restart);

[[nodiscard]] constexpr const OpRow* find_op(std::string_view name) {
  for (const OpRow& row : kOps)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace caisson::ipc
