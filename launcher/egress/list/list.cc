#include "launcher/egress/list/list.h"

#include <algorithm>
#include <cstring>

#include "launcher/egress/list/path.h"
#include "launcher/egress/list/prefix.h"
#include "launcher/egress/list/upstream.h"

namespace caisson::egress {
namespace {

// Numbers in native order: the same build writes and reads them. Each list has one form in bytes, so that PID 1, which only
// compares bytes, tells equal lists from different ones.
constexpr std::string_view kMark = "egress4\n";

enum class Kind : std::uint8_t { name, suffix, address };
enum : std::uint8_t { kDeny = 1, kPrivate = 2, kReadOnly = 4, kSniOptional = 8, kAlarm = 16, kInspect = 32, kAllFlags = 63 };
constexpr std::uint16_t kHttpPort = 80;

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint16_t>(text.size()));
  out += text;
}

void put_rule(std::string& out, const Rule& rule) {
  put(out, static_cast<std::uint8_t>((rule.deny ? kDeny : 0) | (rule.private_ ? kPrivate : 0) | (rule.read_only ? kReadOnly : 0) |
                                     (rule.sni == Sni::optional ? kSniOptional : 0) | (rule.alarm ? kAlarm : 0) |
                                     (rule.inspect ? kInspect : 0)));
  put(out, rule.address ? Kind::address : rule.name.empty() ? Kind::suffix : Kind::name);
  if (rule.address) {
    put(out, static_cast<std::uint8_t>(rule.address->v6));
    out.append(reinterpret_cast<const char*>(rule.address->bytes.data()), rule.address->bytes.size());
    put(out, static_cast<std::uint8_t>(rule.prefix));
  } else {
    put_text(out, rule.name.empty() ? rule.suffix : rule.name);
  }
  put(out, static_cast<std::uint8_t>(rule.ports.size()));
  for (const Ports& ports : rule.ports) put(out, ports.first), put(out, ports.last);
  put(out, static_cast<std::uint8_t>(rule.paths.size()));
  for (const std::string& path : rule.paths) put_text(out, path);
  put_text(out, rule.why);
}

void put_binding(std::string& out, const Binding& binding) {
  for (const std::string* text :
       {&binding.name, &binding.placeholder, &binding.host, &binding.path, &binding.field, &binding.file, &binding.env})
    put_text(out, *text);
  put_text(out, binding.command);
  put_text(out, binding.why);
  put(out, binding.port);
  put(out, binding.refresh_seconds);
  put(out, static_cast<std::uint8_t>(binding.methods.size()));
  for (const std::string& method : binding.methods) put_text(out, method);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return left_.empty(); }
  void check(bool holds) { good_ = good_ && holds; }
  [[nodiscard]] std::string_view take(std::size_t size) {
    if (!good_ || left_.size() < size) return good_ = false, std::string_view();
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  template <class T>
  [[nodiscard]] T number(T least = 0, T most = std::numeric_limits<T>::max()) {
    T value{};
    const std::string_view bytes = take(sizeof value);
    if (good_) std::memcpy(&value, bytes.data(), sizeof value);
    check(value >= least && value <= most);
    return value;
  }
  [[nodiscard]] std::string text(std::size_t most) {
    return std::string(take(number<std::uint16_t>(0, static_cast<std::uint16_t>(most))));
  }

 private:
  std::string_view left_;
  bool good_ = true;
};

bool is_line(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

// Canonical, as compile wrote it: a name that compares equal to no host would be a rule without effect.
std::string read_canonical_name(Reader& in) {
  std::string text = in.text(255);
  const auto host = in.good() ? read_host(text) : fail(Code::protocol, "");
  const Name* name = host ? std::get_if<Name>(&*host) : nullptr;
  in.check(name != nullptr && name->text == text);
  return text;
}

void read_address(Reader& in, Rule& rule) {
  Address address{.v6 = in.number<std::uint8_t>(0, 1) == 1};
  const std::string_view bytes = in.take(address.bytes.size());
  std::ranges::copy(bytes, address.bytes.begin());
  rule.prefix = in.number<std::uint8_t>();
  in.check(is_whole({address, rule.prefix}) && canonical(address) == address);
  rule.address = address;
}

Rule read_rule(Reader& in) {
  Rule rule;
  const auto flags = in.number<std::uint8_t>(0, kAllFlags);
  rule.deny = (flags & kDeny) != 0;
  rule.private_ = (flags & kPrivate) != 0;
  rule.read_only = (flags & kReadOnly) != 0;
  rule.alarm = (flags & kAlarm) != 0;
  rule.inspect = (flags & kInspect) != 0;
  rule.sni = (flags & kSniOptional) != 0 ? Sni::optional : Sni::required;
  switch (static_cast<Kind>(in.number<std::uint8_t>(0, static_cast<std::uint8_t>(Kind::address)))) {
    case Kind::name:
      rule.name = read_canonical_name(in);
      break;
    case Kind::suffix:
      rule.suffix = read_canonical_name(in);
      break;
    case Kind::address:
      read_address(in, rule);
      break;
  }
  rule.ports.resize(in.number<std::uint8_t>(0, kMaxRulePorts));
  for (Ports& ports : rule.ports) {
    ports.first = in.number<std::uint16_t>(1);
    ports.last = in.number<std::uint16_t>(ports.first);
  }
  rule.paths.resize(in.number<std::uint8_t>(0, kMaxRulePaths));
  for (std::string& path : rule.paths) {
    path = in.text(kMaxPathBytes);
    in.check(fault_of_path(path).empty());
  }
  // An address or no name at all in the ClientHello: the opener would have nothing to certify.
  in.check(!rule.inspect || (!rule.deny && !rule.address && rule.sni == Sni::required));
  in.check(rule.paths.empty() || (!rule.deny && !rule.address));
  rule.why = in.text(kMaxRuleWhy);
  in.check(is_line(rule.why));
  return rule;
}

Binding read_binding(Reader& in) {
  Binding binding;
  for (std::string* text :
       {&binding.name, &binding.placeholder, &binding.host, &binding.path, &binding.field, &binding.file, &binding.env})
    *text = in.text(kMaxBindingText);
  binding.command = in.text(kMaxCommand);
  binding.why = in.text(kMaxRuleWhy);
  in.check(is_line(binding.why));
  binding.port = in.number<std::uint16_t>();
  binding.refresh_seconds = in.number<std::uint32_t>();
  binding.methods.resize(in.number<std::uint8_t>(0, kMaxMethods));
  for (std::string& method : binding.methods) method = in.text(kMaxBindingText);
  in.check(in.good() && fault_of(binding).empty());
  return binding;
}

}  // namespace

bool is_opened(const List& list, const Host& host, std::uint16_t port) {
  const auto* name = std::get_if<Name>(&host);
  if (name == nullptr) return false;
  const auto bound = [&](const Binding& one) { return one.host == name->text && one.port == port; };
  return std::ranges::any_of(list.bindings, bound) || (port != kHttpPort && decide(list, host, port).inspect);
}

bool opens(const List& list) { return !list.bindings.empty() || std::ranges::any_of(list.rules, &Rule::inspect); }

std::set<std::string> opened_hosts(const List& list) {
  std::set<std::string> out;
  for (const Binding& binding : list.bindings) out.insert(binding.host);
  for (const Rule& rule : list.rules)
    if (rule.inspect) out.insert(rule.name.empty() ? "*." + rule.suffix : rule.name);
  return out;
}

const Rule* rule_of(const List& list, int rule) {
  const auto number = static_cast<std::size_t>(rule);
  return rule >= 0 && number < list.rules.size() ? &list.rules[number] : nullptr;
}

std::string_view why_of(const List& list, int rule) {
  const Rule* found = rule_of(list, rule);
  return found != nullptr ? std::string_view(found->why) : std::string_view();
}

std::string list_bytes(const List& list) {
  std::string out(kMark);
  put(out, static_cast<std::uint8_t>(list.mode));
  put(out, static_cast<std::uint8_t>(list.ask));
  put(out, list.limits.connections);
  put(out, list.limits.connections_per_second);
  put(out, list.limits.bytes_per_second);
  put(out, list.limits.idle_seconds);
  put(out, static_cast<std::uint32_t>(list.rules.size()));
  for (const Rule& rule : list.rules) put_rule(out, rule);
  put_text(out, list.upstream);
  put(out, static_cast<std::uint8_t>(list.bindings.size()));
  for (const Binding& binding : list.bindings) put_binding(out, binding);
  put_text(out, list.trust);
  put(out, static_cast<std::uint8_t>(list.client_commands));
  return out;
}

Result<List> read_list(std::string_view bytes) {
  const auto wrong = [] { return fail(Code::protocol, "an egress list is malformed"); };
  if (bytes.size() > kMaxListBytes) return fail(Code::limit, "an egress list is too large");
  if (!bytes.starts_with(kMark)) return wrong();
  Reader in(bytes.substr(kMark.size()));
  List list;
  list.mode = static_cast<Mode>(in.number<std::uint8_t>(0, static_cast<std::uint8_t>(Mode::open)));
  list.ask = static_cast<Approver>(in.number<std::uint8_t>(0, static_cast<std::uint8_t>(Approver::api)));
  list.limits.connections = in.number<std::uint32_t>(1);
  list.limits.connections_per_second = in.number<std::uint32_t>(1);
  list.limits.bytes_per_second = in.number<std::uint64_t>();
  list.limits.idle_seconds = in.number<std::uint32_t>(1);
  const auto count = in.number<std::uint32_t>(0, kMaxRules);
  for (std::uint32_t i = 0; i < count && in.good(); ++i) list.rules.push_back(read_rule(in));
  list.upstream = in.text(std::numeric_limits<std::uint16_t>::max());
  if (!list.upstream.empty()) {
    const auto upstream = in.good() ? read_upstream(list.upstream) : fail(Code::protocol, "");
    in.check(upstream && upstream->of_policy && upstream->password.empty() && upstream_bytes(*upstream) == list.upstream);
  }
  const auto bindings = in.number<std::uint8_t>(0, kMaxBindings);
  for (std::uint8_t i = 0; i < bindings && in.good(); ++i) list.bindings.push_back(read_binding(in));
  list.trust = in.text(kMaxBindingText);
  in.check(list.trust.empty() || (list.trust.starts_with('/') && is_line(list.trust)));
  list.client_commands = in.number<std::uint8_t>(0, 1) == 1;
  if (!in.good() || !in.at_end()) return wrong();
  return list;
}

}  // namespace caisson::egress
