#include "launcher/compiler/secrets.h"

#include <algorithm>
#include <set>

#include "launcher/common/base/hash.h"
#include "launcher/common/base/session_id.h"
#include "launcher/common/egress/trust.h"
#include "launcher/compiler/stages.h"
#include "launcher/egress/list/list.h"
#include "launcher/egress/list/upstream.h"

namespace caisson::policy {
namespace {

using egress::Binding;
using json::Value;

constexpr std::uint16_t kHttps = 443, kHttp = 80;
constexpr std::size_t kPlaceholderHex = 24;

static_assert(kMaxWhy == egress::kMaxRuleWhy);

// No server takes it for a secret, and whoever finds one in a log sees what it is. The same as long as the policy says the same:
// a session that runs while policies are read again keeps one that holds.
std::string placeholder_of(const Binding& binding) {
  const std::string what =
      binding.name + '\n' + binding.host + '\n' + std::to_string(binding.port) + '\n' + binding.file + binding.command;
  return "caisson-placeholder-" + binding.name + "-" + sha256_hex(what).substr(0, kPlaceholderHex);
}

Binding binding_of(const Value& secret) {
  Binding out{.name = secret["name"].get<std::string>(), .placeholder = {}, .host = secret["host"].get<std::string>()};
  out.port = secret.value("port", kHttps);
  for (const Value& method : list_of(secret, "methods")) out.methods.push_back(method.get<std::string>());
  out.path = secret.value("path", "/");
  out.field = secret.value("field", "authorization");
  out.file = secret.value("file", "");
  out.command = secret.value("command", "");
  out.refresh_seconds = secret.value("refresh_seconds", egress::kUsualRefresh);
  out.env = secret["env"].get<std::string>();
  out.why = secret["why"].get<std::string>();
  out.placeholder = placeholder_of(out);
  return out;
}

egress::List list_in(std::string_view bytes) {
  auto list = egress::read_list(bytes);
  return list ? std::move(*list) : egress::List();
}

std::string java_option(const std::string& store) { return std::string(egress::kJavaOption) + store + egress::kJavaStore; }

// In the place of the system's authorities, where most programs look, and variables lead the others. False, and nothing is
// changed: the policy itself says what is there. Not required: `caisson run` has no launcher, so it has
// neither a store nor a way out.
bool trust_in(Policy& policy, const std::string& store) {
  const std::string place = policy.system_packages ? egress::kApart : egress::kSystemStore;
  const auto around = [&place](const Grant& grant) { return inside(grant.path, place); };
  const auto plain = [](const Grant& grant) { return grant.source == grant.path && grant.access == Access::read; };
  if (std::ranges::any_of(policy.grants, [&](const Grant& grant) { return around(grant) && !plain(grant); })) return false;
  std::erase_if(policy.grants, around);  // all of it is in the store
  policy.grants.push_back({.path = place,
                           .source = store,
                           .required = false,
                           .description = "The system's authorities, the operator's, and that of opened hosts"});
  std::ranges::sort(policy.grants, {}, &Grant::path);
  for (const auto& [name, below] : egress::kTrustNames) policy.env.set.emplace(name, place + below);
  if (policy.system_packages) policy.env.set.emplace(egress::kJavaName, java_option(place));
  // Not in a grant, nor where the policy has a file or a link, where it could not be made: such a policy says itself what
  // Chromium finds.
  const auto taken = [](const auto& one) { return inside(egress::kChromiumLink, one.first); };
  if (ruling_grant(policy.grants, egress::kChromiumLink) == nullptr && std::ranges::none_of(policy.links, taken) &&
      std::ranges::none_of(policy.files, taken))
    policy.links.emplace(egress::kChromiumLink, place + egress::kChromiumPolicy);
  return true;
}

// The grant by which sessions could read the file; nullptr: no grant shows it. `hide` does not help: without mounts it hides
// nothing.
const Grant* shown_by(const Policy& policy, std::string_view file) {
  const auto found = std::ranges::find_if(policy.grants, [file](const Grant& grant) { return inside(file, grant.source); });
  return found == policy.grants.end() ? nullptr : &*found;
}

}  // namespace

void check_secrets(const Source& source, Problems& problems) {
  const Value& secrets = list_of(source.doc, "secrets");
  std::set<std::string> names;
  for (std::size_t i = 0; i < secrets.size(); ++i) {
    const std::string at = "/secrets/" + std::to_string(i);
    const Binding binding = binding_of(secrets[i]);
    if (const std::string_view fault = fault_of(binding); !fault.empty()) problems.add(source, at, std::string(fault));
    if (const int from = !binding.file.empty() + !binding.command.empty() + secrets[i].value("handed", false); from != 1)
      problems.add(source, at, "comes from one place: \"file\", \"command\" or \"handed\": true");
    if (binding.port == kHttp)
      problems.add(source, at + "/port", "is that of plain HTTP: a secret goes to servers that prove who they are, by TLS");
    if (std::ranges::any_of(binding.why, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
      problems.add(source, at + "/why", "has a control character: a reason is one line");
    for (const char* member : {"name", "env"}) {
      const auto text = secrets[i][member].get<std::string>();
      if (!names.insert(std::string(member) + ' ' + text).second)
        problems.add(source, at + "/" + member, "is another secret's, too: " + quote(text));
    }
    if (std::ranges::find(egress::kTrustNames, binding.env, &egress::TrustName::name) != std::end(egress::kTrustNames))
      problems.add(source, at + "/env", quote(binding.env) + " leads programs to their authorities: say another name");
  }
}

void bind_secrets(Policy& policy, const Value& secrets, const std::string& run, bool authorities) {
  if (!goes_out(policy.network)) return;
  auto list = egress::read_list(policy.egress);
  if (!list) return;  // too large: check_policy() says so
  for (const Value& secret : secrets) list->bindings.push_back(binding_of(secret));
  if (!opens(*list) && !authorities) return;
  const std::string store = run + (opens(*list) ? egress::kOpenersTrust : egress::kSystemsTrust);
  for (const Binding& binding : list->bindings) policy.env.set.emplace(binding.env, binding.placeholder);
  if (trust_in(policy, store)) list->trust = store;
  policy.egress = list_bytes(*list);
}

void check_opened(const Policy& policy, const Source& source, Problems& problems) {
  const egress::List list = list_in(policy.egress);
  std::size_t bytes = 0;
  for (const std::string& host : opened_hosts(list)) bytes += host.size() + egress::kAroundName;
  if (bytes > egress::kMaxOpenedBytes)
    problems.add(source, "/egress",
                 "opens TLS at too many names for one certificate: " + std::to_string(egress::kMaxOpenedBytes) + " bytes, with " +
                     std::to_string(egress::kAroundName) + " for each: name what they have in common (\"*.example.org\")");
  if (list.trust.empty() && std::ranges::any_of(list.rules, &egress::Rule::inspect))
    problems.add(
        source, "/egress",
        "opens TLS by \"inspect\", which needs " + quote(egress::kSystemStore) + ", of which a grant shows something else");
  for (std::size_t i = 0; i < list.bindings.size(); ++i) {
    const Binding& binding = list.bindings[i];
    const auto problem = [&](const char* member, const std::string& what) {
      const auto own = source.doc.contains("secrets") ? "/" + std::to_string(i) + "/" + member : "";  // else it inherited them
      problems.add(source, "/secrets" + own, what);
    };
    const auto host = egress::read_host(binding.host);
    if (!host || decide(list, *host, binding.port).kind != egress::Verdict::Kind::allow)
      problem("host", quote(binding.host) + " at port " + std::to_string(binding.port) +
                          " is not permitted by 'egress', so nothing could use secret " + quote(binding.name));
    if (list.trust.empty()) problem("host", "needs " + quote(egress::kSystemStore) + ", of which a grant shows something else");
    if (policy.env.set.at(binding.env) != binding.placeholder)
      problem("env", quote(binding.env) + " is set by 'env' already: the session would not find the placeholder");
  }
}

std::string shown_secret(const Policy& policy, const PolicySet& all) {
  const egress::List list = list_in(policy.egress);
  std::vector<std::pair<std::string, std::string>> files;
  for (const Binding& binding : list.bindings)
    if (!binding.file.empty()) files.emplace_back("secret " + quote(binding.name), binding.file);
  if (const auto upstream = egress::read_upstream(list.upstream); upstream && !upstream->secret.empty())
    files.emplace_back("the secret of 'upstream'", upstream->secret);
  for (const auto& [what, file] : files)
    for (const auto& [domain, other] : all) {
      const Grant* grant = other != nullptr ? shown_by(*other, file) : nullptr;
      if (grant == nullptr && !(other != nullptr && (inside(file, other->home_path) || inside(file, "/tmp")))) continue;
      const std::string place = grant != nullptr ? "the grant of " + quote(grant->path) : "home or /tmp";
      return what + ": " + quote(file) + " lies in " + place + " of domain " + quote(domain) +
             ", whose sessions could read it: keep it elsewhere, such as in /etc/caisson/secrets";
    }
  return {};
}

std::string fault_of_credentials(const PolicySet& all) {
  const auto runs = [](const egress::List& list) {
    const auto upstream = egress::read_upstream(list.upstream);
    return list.client_commands || (upstream && !upstream->command.empty()) ||
           std::ranges::any_of(list.bindings, [](const Binding& one) { return !one.command.empty(); });
  };
  const auto one = all.find(std::string(kCredentialsDomain));
  const Policy* const own = one != all.end() ? one->second.get() : nullptr;
  const auto shared = [own](Scope scope, const char* field) { return scope != Scope::private_ && !own->why.contains(field); };
  if (own != nullptr && (shared(own->home, "/home") || shared(own->tmp, "/tmp")))
    return "needs \"home\": \"private\" and \"tmp\": \"private\": other sessions of the workspace could leave files for its "
           "commands. Where that cannot be had, say \"why\" of /home and of /tmp";
  for (const auto& [domain, policy] : all)
    if (one == all.end() && policy != nullptr && runs(list_in(policy->egress)))
      return "is missing: a command that domain " + quote(domain) + " names runs in sessions of it";
  return {};
}

void trust_in_place(Policy& policy) {
  const std::string store = trust_of(policy);
  const auto grant = std::ranges::find(policy.grants, store, &Grant::source);
  if (store.empty() || grant == policy.grants.end()) return;
  const auto lead = [&policy](const char* name, const std::string& from, const std::string& to) {
    if (const auto set = policy.env.set.find(name); set != policy.env.set.end() && set->second == from) set->second = to;
  };
  for (const auto& [name, below] : egress::kTrustNames) lead(name, grant->path + below, store + below);
  policy.env.set.emplace(egress::kJavaName, java_option(grant->path));
  lead(egress::kJavaName, java_option(grant->path), java_option(store));
}

std::string trust_of(const Policy& policy) { return list_in(policy.egress).trust; }

Value secrets_json(std::string_view bytes) {
  Value out = Value::array();
  for (const Binding& one : list_in(bytes).bindings) {
    out.push_back({{"name", one.name},
                   {"host", one.host},
                   {"port", one.port},
                   {"path", one.path},
                   {"field", one.field},
                   {"env", one.env},
                   {"why", one.why}});
    if (!one.file.empty()) out.back()["file"] = one.file;
    else if (one.command.empty()) out.back()["handed"] = true;
    if (!one.command.empty()) out.back()["command"] = one.command, out.back()["refresh_seconds"] = one.refresh_seconds;
    if (!one.methods.empty()) out.back()["methods"] = one.methods;
  }
  return out;
}

}  // namespace caisson::policy
