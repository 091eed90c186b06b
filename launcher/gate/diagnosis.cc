#include "launcher/gate/diagnosis.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "launcher/common/base/session_id.h"
#include "launcher/common/telling/json_text.h"
#include "launcher/egress/list/path.h"

namespace caisson::gate {
namespace {

using egress::Refusal;
using egress::Verdict;

constexpr std::string_view kDefaultDomain = "bash";

std::string_view name_of(Refusal refusal) { return word(words(refusal), static_cast<std::size_t>(refusal)); }

struct Url {
  bool plain = true;
  egress::Host host;
  std::uint16_t port = 0;
  std::string_view path = "/";
};

Result<Url> read_url(std::string_view text) {
  const auto wrong = [text] {
    return fail(Code::invalid_argument, quote(text) + " is no URL: http://host[:port][/path], or https://");
  };
  Url out;
  std::string_view rest = text;
  const std::size_t scheme = rest.find("://");
  if (scheme != std::string_view::npos) {
    out.plain = rest.substr(0, scheme) == "http";
    if (!out.plain && rest.substr(0, scheme) != "https") return wrong();
    rest.remove_prefix(scheme + 3);
  }
  const std::size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
  if (slash < rest.size() && rest[slash] == '/') out.path = rest.substr(slash);
  std::string_view place = rest.substr(0, slash);
  const std::size_t bracket = place.rfind(']'), colon = place.find(':', bracket == std::string_view::npos ? 0 : bracket);
  out.port = out.plain ? 80 : 443;
  if (colon != std::string_view::npos) {
    const std::string_view digits = place.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
    if (error != std::errc() || end != digits.data() + digits.size() || out.port == 0) return wrong();
    place = place.substr(0, colon);
  }
  const auto host = egress::read_host(place);
  if (!host) return wrong();
  out.host = *host;
  return out;
}

std::string place_text(const std::string& host, std::uint16_t port) {
  return (host.contains(':') ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace

Result<Diagnosis> Diagnosis::begin(const Settings& settings, const json::Value& request) {
  TRY_ASSIGN(const std::string text, text_of(request, "url"));
  TRY_ASSIGN(const auto domain, json::get_string(request, "domain"));
  TRY_ASSIGN(const Url url, read_url(text));
  const auto& lists = settings.lists().of;
  auto list = lists.find(domain ? std::string_view(*domain) : kDefaultDomain);
  if (list == lists.end() && !domain) list = lists.begin();
  if (list == lists.end())
    return fail(Code::not_found,
                "no domain " + quote(domain.value_or("")) + " has a way out: its policy needs \"network\": \"allowlist\"");
  Diagnosis out;
  out.out_ = {{"url", text},
              {"route", "denied"},
              {"matched_mapping", nullptr},
              {"resolved_target", nullptr},
              {"target_reachable", false},
              {"domain", list->first},
              {"steps", json::Value::array()}};
  out.domain_ = list->first;
  out.plain_ = url.plain;
  out.place_ = url.host;
  out.host_ = host_text(url.host);
  out.port_ = url.port;
  out.step("for sessions of the domain " + out.domain_ + ": " + egress::host_text(url.host) + ", port " +
           std::to_string(url.port));
  out.path_ = url.path.substr(0, url.path.find('#'));
  if (out.lead(settings)) return out;
  out.judge(*list->second);
  if (!out.refused()) out.choose_way(settings);
  return out;
}

// True: it is over, or leads into the workspace itself.
bool Diagnosis::lead(const Settings& settings) {
  const egress::List& list = *settings.lists().of.find(domain_)->second;
  const egress::Mapping* mapping =
      plain_ && domain_ != kCredentialsDomain ? find_mapping(settings.mappings(), place_, port_, path_) : nullptr;
  if (mapping == nullptr) {
    step(plain_ ? "no mapping is about it" : "mappings are about plain HTTP");
    return false;
  }
  const Verdict source = decide(list, place_, port_);
  if (source.kind == Verdict::Kind::deny)
    return rule_ = source.rule, refuse(source.alarm ? Refusal::canary : Refusal::rule, "a rule denies it, mapped or not"), true;
  out_["matched_mapping"] = mapping_json(*mapping);
  out_["resolved_target"] = egress::place_text(*mapping);
  out_["route"] = "mapping";
  path_ = egress::mapped_target(*mapping, path_);
  step("the mapping of " + mapping->source + " leads it to " + egress::place_text(*mapping) + path_);
  port_ = mapping->to_port;
  if (mapping->inside) return next_ = Next::inside, true;
  place_ = mapping->to_host;
  host_ = host_text(place_);
  return false;
}

void Diagnosis::judge(const egress::List& list) {
  const Verdict verdict = decide(list, place_, port_);
  rule_ = verdict.rule;
  out_["rule"] = rule_;
  out_["why"] = std::string(why_of(list, rule_));
  const std::string rule = "rule " + std::to_string(rule_) + " (" + std::string(why_of(list, rule_)) + ")";
  if (verdict.kind == Verdict::Kind::deny) return refuse(verdict.alarm ? Refusal::canary : Refusal::rule, rule + " denies it");
  if (verdict.kind == Verdict::Kind::none) {
    const auto* name = std::get_if<egress::Name>(&place_);
    const bool other = name != nullptr && decide_name(list, *name).kind == Verdict::Kind::allow;
    if (other) return refuse(Refusal::port, "a rule names the host with other ports: add the port to its \"ports\"");
    return refuse(Refusal::not_listed, "no rule names it: add one to the \"egress\" of the domain's policy");
  }
  step(rule_ < 0 ? "the policy's \"network\" permits every public address" : rule + " permits it");
  const auto* address = std::get_if<egress::Address>(&place_);
  if (address != nullptr && !address_permitted(list, verdict, place_, *address, port_))
    return refuse(Refusal::address, "the address is no public one, and no rule names it");
  if (!plain_ && is_opened(list, place_, port_)) step("TLS is opened there: its requests are seen");
  if (const egress::Rule* found = rule_of(list, rule_); found != nullptr) judge_request(*found);
}

void Diagnosis::judge_request(const egress::Rule& rule) {
  if (rule.read_only) step("the rule permits GET, HEAD and OPTIONS");
  if (rule.paths.empty()) return;
  step("the rule permits what is at and below " + egress::paths_text(rule.paths));
  if (!egress::is_at_path(path_, rule.paths)) refuse(Refusal::path, "it permits other paths than " + path_);
}

void Diagnosis::choose_way(const Settings& settings) {
  next_ = Next::dial;
  const bool mapped = out_["route"] == "mapping";
  const auto upstream = settings.upstream_of(domain_);
  const bool through = upstream && goes_through(*upstream, place_);
  if (!mapped) out_["route"] = through ? "upstream" : "direct";
  if (through) step("it goes through the upstream proxy " + server_text(*upstream) + ", which resolves names");
  else if (upstream) step("it goes directly: it is excluded from the upstream proxy, or not included");
  else step("it goes directly");
}

void Diagnosis::refuse(Refusal refusal, const std::string& why) {
  refusal_ = refusal;
  next_ = Next::none;
  out_["route"] = "denied";
  out_["refusal"] = name_of(refusal);
  out_["target_reachable"] = false;
  step("refused (" + std::string(name_of(refusal)) + "): " + why);
}

void Diagnosis::reached(int error) {
  error_ = error;
  out_["target_reachable"] = error == 0;
  step(error == 0 ? "a server of the workspace answers at port " + std::to_string(port_)
                  : "no server of the workspace answers at port " + std::to_string(port_) + ": " + errno_name(error));
}

void Diagnosis::dialed(const egress::DialAnswer& answer) {
  egress::Address address{.v6 = answer.v6 != 0};
  std::ranges::copy(answer.address, address.bytes.begin());
  const std::string where = address == egress::Address() ? "" : " at " + address.text();
  const auto refusal =
      static_cast<Refusal>(answer.refusal < static_cast<std::uint32_t>(count_words(words(Refusal{}))) ? answer.refusal : 0);
  if (refusal == Refusal::upstream) {
    refusal_ = refusal;
    out_["refusal"] = name_of(refusal);
    return step("the upstream proxy" + where + " refuses it" +
                (answer.status != 0 ? " with " + std::to_string(answer.status) : ""));
  }
  if (refusal != Refusal::none) return refuse(refusal, "the dialer does not connect there" + where);
  error_ = answer.error;
  out_["target_reachable"] = error_ == 0;
  if (!where.empty() && out_["resolved_target"].is_null() && answer.upstream == 0)
    out_["resolved_target"] = place_text(address.text(), port_);
  if (answer.upstream != 0 && out_["resolved_target"].is_null()) out_["resolved_target"] = place_text(host_, port_);
  step(error_ == 0 ? (answer.upstream != 0 ? "the upstream proxy" + where + " has connected" : "connected" + where)
                   : "the connection" + where + " fails: " + errno_name(error_));
}

std::string Diagnosis::record(const std::string& workspace) const {
  JsonText out;
  out.string("workspace", workspace).string("domain", domain_).string("via", "diagnose").string("host", host_);
  out.number("port", port_).number("rule", rule_);
  if (refused()) out.string("refusal", name_of(refusal_));
  else if (error_ != 0) out.string("error", errno_name(error_));
  return out.text();
}

}  // namespace caisson::gate
