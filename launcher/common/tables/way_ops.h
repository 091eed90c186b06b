// What the agent asks of caisson-gate about a workspace's way out, over the line that workspace_connect gives for port 0: one
// JSON object, {"op": a word of these, ...}, and one back: {"result": ...}, or {"error": a word of Code, "what": text}.
#pragma once

#include <cstddef>
#include <string_view>

namespace caisson::way {

inline constexpr std::size_t kMaxMessage = 64 * 1024;  // either way

enum class Op {
  get,              // -> {upstream: {addr, username}, or null, excludes, mappings: [{source, target, source_host, source_path,
                    // internal_port}], port: the door's, where sessions ask for a proxy}
  set_upstream,     // server, auth_cmd -> as get
  remove_upstream,  // -> as get
  add_exclude,      // pattern -> as get
  remove_exclude,   // pattern -> as get
  add_mapping,      // source, target -> as get
  remove_mapping,   // source -> as get
  diagnose,  // url, domain -> {domain, route, steps, matched_mapping, resolved_target, target_reachable, rule, why, refusal}
  health,    // -> {door, dialer, consistent, inconsistencies}
  figures,   // -> of all workspaces since the gate's start: {ended, failed, open, names, up, down, dropped, refused: {word:
             // count}, alarms: {word: count}}; refused by the words of Refusal (common/egress/protocol.h)
  recent,    // -> {records: [...]}: the workspace's last connections and refusals, the newest first: members of the audit log's
             // egress_connection and egress_refused, time and refused: true or false
  asks,  // -> {asked: [{id, session, domain, host, port, refusal, programs, times, seconds_ago}], granted: [{id, session, domain,
         // host, port, once, used, seconds_left}]}: what sessions were refused and may be allowed, and what is. `session` is not
         // there where it is any of the domain's
  allow,   // id of what is asked; for: once, session, time (with seconds), policy; who: in words -> what was decided; of `policy`
           // the rule that it takes, and nothing is allowed
  deny,    // id, who -> it is asked no more
  revoke,  // id of a grant, who -> no more connections by it
  hand_over,  // the operator's: name, secret ("": it is taken back) -> {name, domains}: those of which a policy has it `handed`
};
constexpr std::string_view words(Op) {
  return "get set_upstream remove_upstream add_exclude remove_exclude add_mapping remove_mapping diagnose health "
         "figures recent asks allow deny revoke hand_over";
}

}  // namespace caisson::way
