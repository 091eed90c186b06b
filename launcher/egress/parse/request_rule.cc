#include "launcher/egress/parse/request_rule.h"

#include "launcher/egress/list/path.h"

namespace caisson::egress {
namespace {

bool has_paths(const Rule* rule) { return rule != nullptr && !rule->paths.empty(); }

}  // namespace

bool limits_requests(const List& list, const Verdict& verdict) {
  return verdict.read_only || has_paths(rule_of(list, verdict.rule));
}

bool is_last(const RequestHead& head, const List& list, const Verdict& verdict) {
  return head.body.kind != BodyKind::none && limits_requests(list, verdict);
}

Objection objection_to(const RequestHead& head, const List& list, const Verdict& verdict) {
  if (!limits_requests(list, verdict)) return {};
  if (verdict.read_only && !only_reads(head.method)) return {Refusal::method, "the rule permits GET, HEAD and OPTIONS"};
  if (has_override(head))
    return {Refusal::method, "a field of the request, such as X-HTTP-Method-Override, could make it another one"};
  // Servers that leave such a body unread take it for the next request, which nobody would have judged.
  if (head.body.kind != BodyKind::none && (only_reads(head.method) || head.method == "DELETE"))
    return {Refusal::framing, "a request of this method has no body where a rule limits requests"};
  const Rule* rule = rule_of(list, verdict.rule);
  if (!has_paths(rule) || is_at_path(head.target, rule->paths)) return {};
  if (!is_plain_path(head.target)) return {Refusal::path, "servers could read the path in different ways"};
  return {Refusal::path, "the rule permits other paths"};
}

}  // namespace caisson::egress
