// The fields `egress`, `egress_limits`, `egress_ask` and `upstream` of policy files: what is wrong with their rules, and the list
// that door and dialer decide by (egress/list/list.h). The launcher has it as bytes.
#pragma once

#include "launcher/common/base/json.h"
#include "launcher/common/policy/policy.h"
#include "launcher/compiler/fields.h"

namespace caisson::policy {

// Names are answered at 127.0.0.53, by the list. Without a search line: with a suffix below an allowed "*.suffix" a name that is
// refused would be asked again as one that is allowed.
inline constexpr const char* kResolverFile = "/etc/resolv.conf";
inline constexpr const char* kResolver = "nameserver 127.0.0.53\noptions ndots:1\n";

// Hosts that are none, rules that could never hold or say less than they seem to. Of a document that is valid by the table of
// fields.
void check_egress(const Source& source, Problems& problems);
// The bytes of the list of a policy with all its defaults; empty for a network without a way out. check_policy() checks their
// size.
[[nodiscard]] std::string compile_egress(const json::Value& policy, Network network);
// The rules back, as canonical JSON and for explain.
[[nodiscard]] json::Value egress_json(std::string_view list);
[[nodiscard]] json::Value egress_limits_json(std::string_view list);  // an empty object of no list
[[nodiscard]] json::Value upstream_json(std::string_view list);       // an empty object where none is named
[[nodiscard]] bool egress_auth_cmd(std::string_view list);
[[nodiscard]] std::string egress_ask_word(std::string_view list);  // empty of nobody, and of no list
// At which ports the door listens for a domain with this list where the kernel has no nf_tables, and what is lost by it.
[[nodiscard]] std::string named_ports(std::string_view list);

// Rules that deny are added up, since they take away only. Those that allow are the child's, where it has rules.
[[nodiscard]] json::Value merge_egress(const json::Value& parent, const json::Value& child);
// Whether `child` allows something that `parent` does not say in the same words, its reason apart: with `inspect` or fewer
// `paths` a rule is narrower. Or whether it has not a rule that limits requests, and allows them less exactly.
[[nodiscard]] bool allows_more(const json::Value& parent, const json::Value& child);
// Whether this is a network that permits every host but those that a rule says something else of.
[[nodiscard]] bool permits_all(const json::Value& network);
// Whether `child` has not a rule by which `parent` limits requests: where the network permits every host, they are permitted
// then.
[[nodiscard]] bool drops_limit(const json::Value& parent, const json::Value& child);
// A domain's rules under a preset's: what both allow, and what one denies. A domain that has no way out of its own (`sent_out` by
// the preset, with the preset's reason) has the preset's rules. network: the domain's under the preset.
[[nodiscard]] json::Value egress_under(const json::Value& mine, const json::Value& preset, bool sent_out,
                                       const json::Value& network);

}  // namespace caisson::policy
