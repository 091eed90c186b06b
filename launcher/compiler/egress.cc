#include "launcher/compiler/egress.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <variant>

#include "launcher/common/capture/capture.h"
#include "launcher/compiler/stages.h"
#include "launcher/egress/list/list.h"
#include "launcher/egress/list/path.h"
#include "launcher/egress/list/ports.h"
#include "launcher/egress/list/prefix.h"
#include "launcher/egress/list/upstream.h"

namespace caisson::policy {
namespace {

using egress::Address;
using egress::AddressClass;
using egress::Name;
using egress::Ports;
using json::Value;

constexpr std::uint16_t kHttpPort = 80;

static_assert(find_row("/egress")->most == egress::kMaxRules && kMaxWhy == egress::kMaxRuleWhy && egress::kMaxRulePorts == 16);

// What a rule names.
struct Place {
  std::string name, suffix;
  std::optional<Address> address;
  unsigned prefix = 0;
};
using Read = std::variant<Place, Fault>;

Read not_canonical(std::string meant) { return Fault{"is not canonical", std::move(meant)}; }

Read read_block(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto host = egress::read_host(text.substr(0, slash));
  const auto* address = host ? std::get_if<Address>(&*host) : nullptr;
  const std::string_view digits = text.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (address == nullptr || error != std::errc() || end != digits.data() + digits.size() || bits > family_bits(*address))
    return Fault{"is no block of addresses, such as \"10.1.0.0/16\"", ""};
  Address first = *address;
  for (std::size_t bit = bits; bit < 128; ++bit) first.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80 >> bit % 8));
  const std::string meant = first.text() + "/" + std::to_string(bits);
  if (meant != text) return not_canonical(meant);
  return Place{.address = first, .prefix = bits};
}

Read read_place(const std::string& text) {
  if (const std::size_t scheme = text.find("://"); scheme != std::string::npos)
    return Fault{"is a URL: a rule names a host, and its ports in 'ports'",
                 text.substr(scheme + 3, text.find_first_of(":/?", scheme + 3) - scheme - 3)};
  if (text == "*") return Fault{"is every host: that is what \"network\": \"monitor\" or \"open\" is for", ""};
  if (text.contains('/')) return read_block(text);
  const bool below = text.starts_with("*.");
  const std::string rest = below ? text.substr(2) : text;
  if (rest.contains('*')) return Fault{"has a '*' that is not in front of a whole name, such as \"*.example.org\"", ""};
  const auto host = egress::read_host(rest);
  if (!host) {
    const std::size_t colon = rest.rfind(':');
    if (colon != std::string::npos && egress::read_host(rest.substr(0, colon)))
      return Fault{"names a port: ports stand in 'ports'", text.substr(0, text.rfind(':'))};
    const bool ascii = std::ranges::all_of(rest, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    return Fault{ascii ? "is neither a name nor an address" : "has letters that are written as xn--... in names", ""};
  }
  const std::string canonical = egress::host_text(*host);
  const auto* name = std::get_if<Name>(&*host);
  if (below && name == nullptr) return Fault{"is no name below which others could be", ""};
  if (canonical != rest) return not_canonical((below ? "*." : "") + canonical);
  if (name == nullptr) return Place{.address = std::get<Address>(*host), .prefix = family_bits(std::get<Address>(*host))};
  return below ? Place{.suffix = name->text} : Place{.name = name->text};
}

// [443, "8000-8010"]; validated.
std::vector<Ports> read_ports(const Value& list) {
  std::vector<Ports> out;
  for (const Value& item : list) {
    if (item.is_number()) {
      out.push_back({item.get<std::uint16_t>(), item.get<std::uint16_t>()});
      continue;
    }
    const auto& text = item.get_ref<const std::string&>();
    Ports ports;
    std::from_chars(text.data(), text.data() + text.find('-'), ports.first);
    std::from_chars(text.data() + text.find('-') + 1, text.data() + text.size(), ports.last);
    out.push_back(ports);
  }
  return out;
}

bool overlap(const std::vector<Ports>& a, const std::vector<Ports>& b) {
  return std::ranges::any_of(a, [&b](const Ports& x) {
    return std::ranges::any_of(b, [&x](const Ports& y) { return x.first <= y.last && y.first <= x.last; });
  });
}

// Those that a rule without ports stands for.
std::vector<Ports> ports_of(const Value& rule, const std::vector<Ports>& said) {
  if (!said.empty()) return said;
  return rule.value("deny", false) ? std::vector<Ports>{{1, 65535}} : std::vector<Ports>{{80, 80}, {443, 443}};
}

// The class that no rule permits, where the whole block is of it.
std::optional<AddressClass> refused_class(const Place& place) {
  Address last = *place.address;
  for (std::size_t bit = place.prefix; bit < family_bits(last); ++bit)
    last.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80 >> bit % 8);
  const AddressClass kind = class_of(*place.address);
  const bool alone = place.prefix == family_bits(last);
  if (kind == AddressClass::global || kind == AddressClass::private_ || kind == AddressClass::shared || class_of(last) != kind)
    return std::nullopt;
  return kind == AddressClass::metadata && alone ? std::nullopt : std::optional(kind);
}

bool denies(const Value& rule) { return rule.value("deny", false); }

class Checker {
 public:
  Checker(const Source& source, Problems& problems) : source_(source), problems_(problems) {}

  void all() {
    const Value& rules = list_of(source_.doc, "egress");
    for (std::size_t i = 0; i < rules.size(); ++i) {
      rule_ = &rules[i];
      at_ = "/egress/" + std::to_string(i);
      one();
    }
  }

 private:
  void problem(const char* member, const std::string& what, const std::string& meant = {}) {
    problems_.add(source_, at_ + "/" + member, what, meant);
  }

  void one() {
    const auto host = (*rule_)["host"].get<std::string>();
    const Read read = read_place(host);
    if (const auto* fault = std::get_if<Fault>(&read)) return problem("host", quote(host) + " " + fault->what, fault->meant);
    const Place& place = std::get<Place>(read);
    const auto ports = read_ports(list_of(*rule_, "ports"));
    for (const char c : (*rule_)["why"].get_ref<const std::string&>())
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
        return problem("why", "has a control character: a reason is one line");
    denies(*rule_) ? denial() : allowance(place, ports);
    const auto meant = ports_of(*rule_, ports);
    for (const auto& [other, said] : said_[{host, denies(*rule_)}])
      if (overlap(said, meant)) return problem("host", "names " + quote(host) + " and a port of it again, after " + other);
    said_[{host, denies(*rule_)}].emplace_back(at_, meant);
  }

  void denial() {
    for (const char* member : {"private", "sni", "methods", "inspect", "paths"})
      if (rule_->contains(member)) problem(member, "goes with rules that allow: this one denies");
  }

  void allowance(const Place& place, const std::vector<Ports>& ports) {
    if (place.address && ports.empty()) problem("host", "is an address: such a rule needs 'ports'");
    if (place.address && rule_->contains("private"))
      problem("private", "goes with names: a rule of addresses permits those that it names");
    if (const auto kind = place.address ? refused_class(place) : std::nullopt)
      problem("host",
              "leads to no place that can be reached: " + std::string(word(words(*kind), static_cast<std::size_t>(*kind))));
    if (rule_->contains("alarm")) problem("alarm", "goes with rules that deny: this one allows");
    requests(place, ports_of(*rule_, ports));
  }

  // Of requests, which are seen in plain HTTP and where TLS is opened.
  void requests(const Place& place, const std::vector<Ports>& ports) {
    const bool inspects = rule_->value("inspect", false);
    const bool others = overlap(ports, {{1, kHttpPort - 1}, {kHttpPort + 1, 65535}});
    for (const char* member : {"inspect", "paths"})
      if (place.address && rule_->contains(member)) return problem(member, "goes with names: this rule names addresses");
    if (inspects && rule_->value("sni", "required") == "optional")
      problem("inspect", "needs the name that a TLS client asks for, and \"sni\": \"optional\" goes without one");
    if (inspects && !others) problem("inspect", "opens TLS, and port 80 carries plain HTTP, whose requests are seen anyway");
    if (rule_->value("methods", "all") == "read" && overlap(ports, {{443, 443}}) && !inspects)
      problem("methods",
              "\"read\" holds for plain HTTP, and port 443 carries TLS: say \"ports\": [80], or open it by \"inspect\": true");
    if (rule_->contains("paths") && others && !inspects)
      problem("paths",
              "hold where requests are seen, and nobody sees them in TLS: say \"ports\": [80], or open it by \"inspect\": true");
    const Value& paths = list_of(*rule_, "paths");
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const auto path = paths[i].get<std::string>();
      const std::string member = "paths/" + std::to_string(i);
      if (const std::string_view fault = egress::fault_of_path(path); !fault.empty())
        problem(member.c_str(), quote(path) + " " + std::string(fault));
      else if (path.contains('*'))
        problem(member.c_str(), quote(path) + " has a '*': a path permits what is below it, too", path.substr(0, path.find('*')));
    }
  }

  const Source& source_;
  Problems& problems_;
  const Value* rule_ = nullptr;
  std::string at_;
  std::map<std::pair<std::string, bool>, std::vector<std::pair<std::string, std::vector<Ports>>>> said_;
};

egress::Rule compile(const Value& rule) {
  const Read read = read_place(rule["host"].get<std::string>());
  const Place& place = std::get<Place>(read);
  egress::Rule out{
      .deny = denies(rule), .name = place.name, .suffix = place.suffix, .address = place.address, .prefix = place.prefix};
  out.ports = read_ports(list_of(rule, "ports"));
  out.private_ = rule.value("private", false);
  // Who connects to an address names no server in TLS (RFC 6066 3).
  out.sni =
      rule.value("sni", place.address ? "optional" : "required") == "optional" ? egress::Sni::optional : egress::Sni::required;
  if (out.deny) out.sni = egress::Sni::required;
  out.read_only = rule.value("methods", "all") == "read";
  out.inspect = rule.value("inspect", false);
  for (const Value& path : list_of(rule, "paths")) out.paths.push_back(path.get<std::string>());
  out.alarm = rule.value("alarm", false);
  out.why = rule["why"].get<std::string>();
  return out;
}

std::string host_of(const egress::Rule& rule) {
  if (!rule.name.empty()) return rule.name;
  if (!rule.suffix.empty()) return "*." + rule.suffix;
  const std::string text = rule.address->text();
  return rule.prefix == family_bits(*rule.address) ? text : text + "/" + std::to_string(rule.prefix);
}

Value rule_json(const egress::Rule& rule) {
  Value out{{"host", host_of(rule)}, {"why", rule.why}};
  for (const Ports& ports : rule.ports)
    if (ports.first == ports.last) out["ports"].push_back(ports.first);
    else out["ports"].push_back(std::to_string(ports.first) + "-" + std::to_string(ports.last));
  if (rule.deny) out["deny"] = true;
  if (rule.alarm) out["alarm"] = true;
  if (rule.private_) out["private"] = true;
  if (rule.read_only) out["methods"] = "read";
  if (rule.inspect) out["inspect"] = true;
  if (!rule.paths.empty()) out["paths"] = rule.paths;
  if (!rule.deny && (rule.sni == egress::Sni::optional) != rule.address.has_value())
    out["sni"] = word(words(rule.sni), static_cast<std::size_t>(rule.sni));
  return out;
}

bool same_but(std::initializer_list<const char*> members, Value a, Value b) {
  for (const char* member : members) a.erase(member), b.erase(member);
  return a == b;
}

// In the same words, its reason apart; but requests may be seen where they are not by the other one, and fewer paths be
// permitted.
bool no_more_than(const Value& rule, const Value& other) {
  if (!same_but({"why", "inspect", "paths"}, rule, other)) return false;
  if (other.value("inspect", false) && !rule.value("inspect", false)) return false;
  const auto outer = list_of(other, "paths").get<std::vector<std::string>>();
  const auto within = [&outer](const Value& path) { return egress::is_at_path(path.get_ref<const std::string&>(), outer); };
  return outer.empty() || (rule.contains("paths") && std::ranges::all_of(rule["paths"], within));
}
bool said_in(const Value& rules, const Value& rule) {
  return std::ranges::any_of(rules, [&rule](const Value& one) { return no_more_than(rule, one); });
}

bool limits(const Value& rule) {
  return !denies(rule) && (rule.value("inspect", false) || rule.contains("paths") || rule.value("methods", "all") == "read");
}

// Whether `wide` allows a port of all that `rule` names, and less exactly: it decides where there is no `rule`.
bool decides_without(const Value& wide, const Value& rule) {
  const auto ports = [](const Value& of) { return ports_of(of, read_ports(list_of(of, "ports"))); };
  const Read by = read_place(wide["host"].get<std::string>()), named = read_place(rule["host"].get<std::string>());
  const auto *outer = std::get_if<Place>(&by), *inner = std::get_if<Place>(&named);
  if (outer == nullptr || inner == nullptr) return false;  // a preset with such a host is refused for it already
  if (denies(wide) || !overlap(ports(wide), ports(rule))) return false;
  if (outer->address && inner->address)
    return outer->prefix < inner->prefix && contains({*outer->address, outer->prefix}, *inner->address);
  const std::string& name = inner->name.empty() ? inner->suffix : inner->name;
  return !outer->suffix.empty() && name.ends_with("." + outer->suffix);
}

bool limited_in(const Value& rules, const Value& limit) {
  return std::ranges::any_of(rules, [&limit](const Value& rule) { return no_more_than(rule, limit); });
}

// A rule that limits requests, none of which is in `rules`, where a less exact one permits them without that limit.
bool is_lost(const Value& limit, const Value& rules) {
  return limits(limit) && !limited_in(rules, limit) &&
         std::ranges::any_of(rules, [&limit](const Value& rule) { return decides_without(rule, limit); });
}

// With the limit beside it, where it says the same else, such a rule stays; it goes where the limit might allow more.
void keep_limit(Value& rules, const Value& limit) {
  if (!is_lost(limit, rules)) return;
  Value out = Value::array();
  for (const Value& rule : rules)
    if (!decides_without(rule, limit) || same_but({"host", "why", "inspect", "paths", "methods"}, rule, limit))
      out.push_back(rule);
  rules = std::move(out);
  if (is_lost(limit, rules)) rules.push_back(limit);
}

}  // namespace

namespace {

void check_patterns(const Source& source, const Value& upstream, const char* member, Problems& problems) {
  const Value& patterns = list_of(upstream, member);
  std::vector<egress::Pattern> all;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto text = patterns[i].get<std::string>();
    const auto pattern = egress::read_pattern(text);
    const std::string where = std::string("/upstream/") + member + "/" + std::to_string(i);
    if (!pattern) problems.add(source, where, pattern.error().what);
    else if (pattern->text != text) problems.add(source, where, quote(text) + " is not canonical", pattern->text);
    else all.push_back(*pattern);
  }
  if (patterns_size(all) > egress::kMaxPatternBytes)
    problems.add(source, std::string("/upstream/") + member,
                 "may have " + std::to_string(egress::kMaxPatternBytes) +
                     " bytes together: name what hosts have in common (\"*.example.org\")");
}

// Of one file: `server` may stand in the one that it extends.
void check_upstream(const Source& source, Problems& problems) {
  const Value& upstream = source.doc.contains("upstream") ? source.doc["upstream"] : list_of(source.doc, "upstream");
  if (const auto server = upstream.is_object() ? upstream.find("server") : upstream.end(); server != upstream.end()) {
    const auto read = egress::read_server(server->get<std::string>());
    const std::string at = "/upstream/server";
    if (!read) problems.add(source, at, read.error().what);
    else if (!read->user.empty())
      problems.add(source, at, "has a credential: say 'user', and put the password into a file that 'secret' names");
    else if (server_text(*read) != server->get<std::string>())
      problems.add(source, at, quote(server->get<std::string>()) + " is not canonical", server_text(*read));
  }
  if (upstream.is_object() && upstream.contains("secret") && upstream.contains("command"))
    problems.add(source, "/upstream", "has a secret from a file and from a command: say one of them");
  if (const auto command = upstream.is_object() ? upstream.find("command") : upstream.end();
      command != upstream.end() && !egress::is_command(command->get<std::string>()))
    problems.add(source, "/upstream/command", "has a control character: a command is one line");
  if (const auto user = upstream.is_object() ? upstream.find("user") : upstream.end(); user != upstream.end())
    if (egress::Upstream named; !set_credential(named, user->get<std::string>() + ":") || named.user != user->get<std::string>())
      problems.add(source, "/upstream/user", "is no user name: it has a colon or a control character");
  for (const char* member : {"include", "exclude"})
    if (upstream.is_object()) check_patterns(source, upstream, member, problems);
}

std::string_view name_of(egress::Approver ask) { return word(words(ask), static_cast<std::size_t>(ask)); }

// "" without a server: then nothing else says anything.
std::string compile_upstream(const Value& upstream) {
  auto out = egress::read_server(upstream.value("server", ""));
  if (!out) return {};
  out->user = upstream.value("user", "");
  out->secret = upstream.value("secret", "");
  out->command = upstream.value("command", "");
  out->resolve_here = upstream.value("resolve", "proxy") == "local";
  out->of_policy = true;
  for (const Value& text : list_of(upstream, "include")) out->include.push_back(*egress::read_pattern(text.get<std::string>()));
  for (const Value& text : list_of(upstream, "exclude")) out->exclude.push_back(*egress::read_pattern(text.get<std::string>()));
  return upstream_bytes(*out);
}

}  // namespace

void check_egress(const Source& source, Problems& problems) {
  Checker(source, problems).all();
  check_upstream(source, problems);
}

std::string compile_egress(const Value& policy, Network network) {
  if (!goes_out(network)) return {};
  egress::List list;
  list.mode = network == Network::allowlist ? egress::Mode::allowlist
              : network == Network::monitor ? egress::Mode::monitor
                                            : egress::Mode::open;
  for (const Value& rule : list_of(policy, "egress")) list.rules.push_back(compile(rule));
  for (const auto ask : {egress::Approver::operator_, egress::Approver::api})
    if (policy["egress_ask"] == name_of(ask)) list.ask = ask;
  const Value& limits = policy["egress_limits"];
  const auto bytes = limits["bytes_per_second"].get<std::uint64_t>();
  list.limits = {.connections = limits["connections"].get<std::uint32_t>(),
                 .connections_per_second = limits["connections_per_second"].get<std::uint32_t>(),
                 .bytes_per_second = bytes == kNoIoLimit ? 0 : bytes,
                 .idle_seconds = limits["idle_seconds"].get<std::uint32_t>()};
  list.client_commands = policy["egress_auth_cmd"].get<bool>();
  list.upstream = compile_upstream(policy["upstream"]);
  return egress::list_bytes(list);
}

Value egress_json(std::string_view list) {
  Value out = Value::array();
  if (const auto read = egress::read_list(list))
    for (const egress::Rule& rule : read->rules) out.push_back(rule_json(rule));
  return out;
}

Value egress_limits_json(std::string_view list) {
  const auto read = egress::read_list(list);
  if (!read) return Value::object();
  const std::uint64_t bytes = read->limits.bytes_per_second;
  return {{"connections", read->limits.connections},
          {"connections_per_second", read->limits.connections_per_second},
          {"bytes_per_second", bytes == 0 ? kNoIoLimit : bytes},
          {"idle_seconds", read->limits.idle_seconds}};
}

std::string egress_ask_word(std::string_view list) {
  const auto read = egress::read_list(list);
  return read && read->ask != egress::Approver::nobody ? std::string(name_of(read->ask)) : "";
}

bool egress_auth_cmd(std::string_view list) {
  const auto read = egress::read_list(list);
  return read && read->client_commands;
}

Value upstream_json(std::string_view list) {
  const auto read = egress::read_list(list);
  const auto upstream = read && !read->upstream.empty() ? egress::read_upstream(read->upstream) : fail(Code::not_found, "");
  if (!upstream) return Value::object();
  Value out{{"server", server_text(*upstream)}, {"resolve", upstream->resolve_here ? "local" : "proxy"}};
  if (!upstream->user.empty()) out["user"] = upstream->user;
  if (!upstream->secret.empty()) out["secret"] = upstream->secret;
  if (!upstream->command.empty()) out["command"] = upstream->command;
  for (const egress::Pattern& pattern : upstream->include) out["include"].push_back(pattern.text);
  for (const egress::Pattern& pattern : upstream->exclude) out["exclude"].push_back(pattern.text);
  return out;
}

std::string named_ports(std::string_view list) {
  egress::Lists lists;
  if (auto read = egress::read_list(list)) lists.of.emplace("", std::make_shared<const egress::List>(std::move(*read)));
  const auto named = egress::named_ports(lists, capture::kDoorPort);
  return "without nf_tables the door has these ports alone, at every address, the loopback's too: " +
         egress::ports_text(named.ports) + (named.all ? "" : ", and not all that the rules name") +
         "; what connects to another port goes nowhere, without a record, or to a server of the workspace's own that listens at "
         "every address; no session can serve at these; the domains of a workspace have " +
         std::to_string(egress::kMostPorts) +
         " ports together; programs that use the proxy at 127.0.0.1:" + std::to_string(capture::kDoorPort) +
         " go out at every port that is permitted";
}

Value merge_egress(const Value& parent, const Value& child) {
  Value out = child;
  for (const Value& rule : parent)
    if (denies(rule) && !said_in(child, rule)) out.push_back(rule);
  return out;
}

bool allows_more(const Value& parent, const Value& child) {
  return std::ranges::any_of(child, [&parent](const Value& rule) { return !denies(rule) && !said_in(parent, rule); }) ||
         std::ranges::any_of(parent, [&child](const Value& rule) { return is_lost(rule, child); });
}

bool permits_all(const Value& network) {
  using enum Network;
  return std::ranges::any_of(std::array{monitor, open},
                             [&network](Network one) { return network == word(words(one), static_cast<std::size_t>(one)); });
}

bool drops_limit(const Value& parent, const Value& child) {
  return std::ranges::any_of(parent, [&child](const Value& rule) { return limits(rule) && !limited_in(child, rule); });
}

Value egress_under(const Value& mine, const Value& preset, bool sent_out, const Value& network) {
  Value out = Value::array();
  for (const Value& rule : preset)
    if (denies(rule) || sent_out || said_in(mine, rule)) out.push_back(rule);
  for (const Value& rule : mine)
    if ((denies(rule) || said_in(preset, rule)) && !said_in(out, rule)) out.push_back(rule);
  for (const Value* rules : {&mine, &preset})
    for (const Value& rule : *rules) keep_limit(out, rule);
  if (!permits_all(network)) return out;
  for (const Value* rules : {&mine, &preset})
    for (Value rule : *rules) {
      if (!limits(rule) || limited_in(out, rule)) continue;
      rule.erase("private");  // the limit, and nothing that the rule permits besides
      out.push_back(std::move(rule));
    }
  return out;
}

}  // namespace caisson::policy
