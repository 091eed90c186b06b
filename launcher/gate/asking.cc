#include "launcher/gate/asking.h"

#include <sys/random.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "launcher/common/base/sys.h"
#include "launcher/common/base/word.h"
#include "launcher/common/egress/protocol.h"
#include "launcher/common/tables/way_ops.h"
#include "launcher/gate/settings.h"

namespace caisson::gate {
namespace {

using egress::Approver;

constexpr std::string_view name(way::Op op) { return word(words(op), static_cast<std::size_t>(op)); }

Approver ask_of(const egress::Lists& lists, const std::string& domain) {
  const auto list = lists.of.find(domain);
  return list != lists.of.end() ? list->second->ask : Approver::nobody;
}

std::string string_of(const json::Value& record, const char* member) {
  auto text = json::get_string(record, member);
  return text && *text ? std::move(**text) : "";
}

bool is_undecided(const std::string& refusal) {
  using egress::Refusal;
  for (const auto one : {Refusal::not_listed, Refusal::port, Refusal::unresolved})
    if (refusal == word(words(one), static_cast<std::size_t>(one))) return egress::is_undecided(one);
  return false;
}

// What a client of ours, whose agent may have been taken over, said of itself.
std::string who_of(const json::Value& request) { return string_of(request, "who").substr(0, 64); }

json::Value place_of(const auto& one) { return {{"domain", one.domain}, {"host", host_text(one.host)}, {"port", one.port}}; }

auto find_given(auto& given, std::int64_t id) {
  return std::ranges::find_if(given, [id](const auto& one) { return one.grant.id == id; });
}

std::int64_t seconds_of(std::int64_t us) { return std::max<std::int64_t>(us, 0) / 1'000'000; }

}  // namespace

void Asking::set_lists(const egress::Lists& lists) {
  std::erase_if(proposals_, [&lists](const Proposal& one) { return ask_of(lists, one.domain) == Approver::nobody; });
  std::erase_if(given_, [&lists](const Given& one) { return ask_of(lists, one.grant.domain) == Approver::nobody; });
}

std::uint32_t Asking::refused(const json::Value& record, const egress::Lists& lists, const std::function<json::Value()>& programs,
                              std::int64_t now_us) {
  Proposal made;
  made.session = string_of(record, "session"), made.domain = string_of(record, "domain");
  made.refusal = string_of(record, "refusal");
  const auto port = json::get_int(record, "port");
  auto host = egress::read_host(string_of(record, "host"));
  if (ask_of(lists, made.domain) == Approver::nobody || !is_undecided(made.refusal) || !host || !port || !*port || **port < 1 ||
      **port > 65535)
    return 0;
  made.host = std::move(*host), made.port = static_cast<std::uint16_t>(**port);
  forget_late(now_us);
  if (std::ranges::find(denied_, Place(made.domain, made.host, made.port)) != denied_.end()) return 0;
  const auto known = std::ranges::find_if(proposals_, [&made](const Proposal& one) {
    return std::tie(one.session, one.domain, one.host, one.port) == std::tie(made.session, made.domain, made.host, made.port);
  });
  if (known != proposals_.end()) {
    ++known->times, known->last_us = now_us;
    return known->id;
  }
  if (proposals_.size() >= kMostProposals) make_room();
  made.id = ++last_, made.last_us = now_us, made.programs = programs();
  proposals_.push_back(std::move(made));
  return last_;
}

// A session that asks for many names takes the place of its own questions, not of another's.
void Asking::make_room() {
  std::map<std::string_view, std::size_t> of;
  for (const Proposal& one : proposals_) ++of[one.session];
  proposals_.erase(std::ranges::min_element(proposals_, {}, [&of](const Proposal& one) {
    return std::pair(-static_cast<std::ptrdiff_t>(of[one.session]), one.last_us);
  }));
}

std::uint32_t Asking::first_number() {
  std::uint32_t random = 0;
  constexpr std::uint32_t kMost = 9000;
  return ::getrandom(&random, sizeof random, GRND_NONBLOCK) == sizeof random ? random % kMost : 0;
}

Result<json::Value> Asking::decide(const std::string& op, const json::Value& request, const egress::Lists& lists,
                                   bool by_operator, std::int64_t now_us) {
  TRY_ASSIGN(const auto id, json::get_int(request, "id"));
  if (!id) return fail(Code::invalid_argument, "'id' is missing");
  forget_late(now_us);
  const auto may = [&](const std::string& domain) {
    return by_operator || ask_of(lists, domain) == Approver::api
               ? Status()
               : fail(Code::permission_denied,
                      "the policy (`egress_ask`) leaves it to the operator: `caisson ask` at the launcher");
  };
  json::Value out{{"id", *id}, {"ask", op}, {"by", by_operator ? "operator" : "api"}};
  if (auto who = who_of(request); !who.empty()) out["who"] = std::move(who);
  if (op == name(way::Op::revoke)) {
    const auto at = find_given(given_, *id);
    if (at == given_.end()) return fail(Code::not_found, "no grant " + std::to_string(*id) + " is in force");
    TRY(may(at->grant.domain));
    out.update(place_of(at->grant));
    given_.erase(at);
    return out;
  }
  const auto at = std::ranges::find(proposals_, *id, &Proposal::id);
  if (at == proposals_.end())
    return fail(Code::not_found,
                "nothing is asked under " + std::to_string(*id) + ": it was decided, or nobody has asked for a while");
  TRY(may(at->domain));
  out.update(place_of(*at));
  if (!at->session.empty()) out["session"] = at->session;
  if (op == name(way::Op::allow)) {
    TRY_ASSIGN(const json::Value how, allow(*at, request, now_us));
    out.update(how);
    if (out.contains("rule")) return out;  // that is for the policy, and decides nothing here
  } else {
    if (denied_.size() >= kMostDenied) denied_.pop_front();
    denied_.emplace_back(at->domain, at->host, at->port);
  }
  proposals_.erase(at);
  return out;
}

Result<json::Value> Asking::allow(const Proposal& proposal, const json::Value& request, std::int64_t now_us) {
  TRY_ASSIGN(const std::string how, text_of(request, "for"));
  TRY_ASSIGN(const auto seconds, json::get_int(request, "seconds"));
  if ((how == "time") != seconds.has_value())
    return fail(Code::invalid_argument, "'seconds' goes with \"for\": \"time\", and with nothing else");
  if (seconds && (*seconds < 1 || *seconds > kMostSeconds))
    return fail(Code::invalid_argument, "'seconds' must be from 1 to " + std::to_string(kMostSeconds) +
                                            ": what is to last longer belongs into the policy");
  if (how == "policy")
    return json::Value{
        {"for", how},
        {"rule",
         {{"host", host_text(proposal.host)},
          {"ports", {proposal.port}},
          {"why", "asked for " + std::to_string(proposal.times) + " times until " + sys::rfc3339(sys::realtime_ns())}}}};
  if (how != "once" && how != "session" && how != "time")
    return fail(Code::invalid_argument, "'for' must be once, session, time or policy");
  if (how == "session" && proposal.session.empty())
    return fail(Code::invalid_argument, "sessions are not told apart here: allow it once or for a time");
  if (given_.size() >= egress::kMaxGrants)
    return fail(Code::limit,
                "there are " + std::to_string(egress::kMaxGrants) + " grants: revoke one, or say in the policy what lasts");
  const std::int64_t for_us = how == "once" ? kOnceUs : how == "session" ? kSessionUs : *seconds * 1'000'000;
  given_.push_back({{.id = proposal.id,
                     .domain = proposal.domain,
                     .session = how == "time" ? "" : proposal.session,
                     .host = proposal.host,
                     .port = proposal.port,
                     .once = how == "once"},
                    now_us + for_us});
  return json::Value{{"for", how}, {"seconds", for_us / 1'000'000}};
}

json::Value Asking::shown(std::int64_t now_us) const {
  json::Value asked = json::Value::array(), granted = json::Value::array();
  for (const Proposal& one : proposals_) {
    if (one.last_us + kProposalUs <= now_us) continue;
    json::Value& out = asked.emplace_back(place_of(one));
    out.update({{"id", one.id}, {"refusal", one.refusal}, {"programs", one.programs}, {"times", one.times}});
    out["seconds_ago"] = seconds_of(now_us - one.last_us);
    if (!one.session.empty()) out["session"] = one.session;
  }
  for (const auto& [one, until_us] : given_) {
    if (until_us <= now_us) continue;
    json::Value& out = granted.emplace_back(place_of(one));
    out.update({{"id", one.id}, {"once", one.once}, {"used", one.used}, {"seconds_left", seconds_of(until_us - now_us)}});
    if (!one.session.empty()) out["session"] = one.session;
  }
  return {{"asked", std::move(asked)}, {"granted", std::move(granted)}};
}

void Asking::used(std::uint32_t grant) {
  const auto at = find_given(given_, grant);
  if (at != given_.end() && at->grant.once) at->grant.used = true;
}

egress::Grants Asking::in_force(std::int64_t now_us) {
  forget_late(now_us);
  egress::Grants out;
  for (const Given& one : given_) out.push_back(one.grant);
  return out;
}

std::int64_t Asking::due_us() const {
  const auto first = std::ranges::min_element(given_, {}, &Given::until_us);
  return first != given_.end() ? first->until_us : 0;
}

void Asking::forget_late(std::int64_t now_us) {
  std::erase_if(proposals_, [now_us](const Proposal& one) { return one.last_us + kProposalUs <= now_us; });
  std::erase_if(given_, [now_us](const Given& one) { return one.until_us <= now_us; });
}

}  // namespace caisson::gate
