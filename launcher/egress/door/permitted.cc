#include "launcher/egress/door/permitted.h"

namespace caisson::egress {
namespace {

bool refuse(Facts& facts, Refusal refusal, std::string_view detail = {}) {
  facts.refusal = refusal, facts.detail = detail;
  return false;
}

// A grant for one connection is used by the first that asks, for as long as that one is there.
void look_for_grant(const List& list, Granted& granted, const Host& host, std::uint16_t port, Verdict& verdict) {
  Grant* grant = list.ask != Approver::nobody ? find_grant(granted.grants, granted.asker, host, port, granted.using_) : nullptr;
  if (grant == nullptr || (grant->used && grant->id != granted.using_)) return;
  if (grant->once) grant->used = true, granted.using_ = grant->id;
  verdict.kind = Verdict::Kind::allow, verdict.grant = grant->id;
}

}  // namespace

bool is_asked(const List& list, Refusal refusal) { return list.ask != Approver::nobody && is_undecided(refusal); }

bool permitted(const List& list, Granted granted, const Host& host, std::uint16_t port, Verdict& verdict, Facts& facts) {
  const auto* address = std::get_if<Address>(&host);
  verdict = decide(list, host, port);
  if (verdict.kind == Verdict::Kind::none) look_for_grant(list, granted, host, port, verdict);
  facts.grant = verdict.grant;
  facts.host = host_text(host), facts.port = port, facts.rule = verdict.rule;
  facts.unresolved = address != nullptr;
  if (address != nullptr) facts.address = *address;
  if (verdict.kind == Verdict::Kind::deny) return refuse(facts, verdict.alarm ? Refusal::canary : Refusal::rule);
  if (port == 0) return refuse(facts, Refusal::port, "nothing listens at port 0");
  if (address != nullptr && !address_permitted(list, verdict, host, *address, port)) {
    const AddressClass leads = class_of(*address);
    // Nobody asks for credentials of the cloud by mistake.
    if (leads == AddressClass::metadata) return refuse(facts, Refusal::canary, "an address of a cloud's metadata service");
    if (leads != AddressClass::global) return refuse(facts, Refusal::address, "no address of the public internet");
    return refuse(facts, facts.via == Via::transparent ? Refusal::unresolved : Refusal::not_listed, "no rule names the address");
  }
  if (verdict.kind == Verdict::Kind::allow) return true;
  const auto* name = std::get_if<Name>(&host);
  const bool other_port = name != nullptr && decide_name(list, *name).kind == Verdict::Kind::allow;
  return refuse(facts, other_port ? Refusal::port : Refusal::not_listed);
}

}  // namespace caisson::egress
