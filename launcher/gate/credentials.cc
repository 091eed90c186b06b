// Secrets that are in no file: what commands print (commands.h), and what the operator hands over. They end with this process.
#include <algorithm>
#include <set>

#include "launcher/common/base/sys.h"
#include "launcher/common/telling/json_text.h"
#include "launcher/gate/files.h"
#include "launcher/gate/gate.h"
#include "launcher/gate/secrets.h"

namespace caisson::gate {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
// Between two runs of a command that a refused credential, or the use of a secret, asks for: at first, and at most, where that
// does not help.
constexpr std::int64_t kAgainUs = 2 * kSecondUs, kUsedAgainUs = 10 * kSecondUs, kMostWaitUs = 600 * kSecondUs;
constexpr int kUnauthorized = 401;

// Another command is another secret. Those of upstream proxies are all domains', which have one and the same proxy.
std::string key_of(const std::string& domain, const egress::Binding& binding) {
  return domain + '\n' + binding.name + '\n' + binding.command;
}
std::string key_of(const egress::Upstream& upstream) { return "\n\n" + upstream.command; }
bool is_upstreams(const std::string& key) { return key.starts_with("\n\n"); }

std::string name_in(const std::string& key) {
  if (is_upstreams(key)) return "upstream";
  const std::size_t begin = key.find('\n') + 1;
  return key.substr(begin, key.find('\n', begin) - begin);
}

Result<Fd> checked(const std::string& key, const std::string& text) {
  if (!is_upstreams(key) && !egress::is_secret(text))
    return fail(Code::invalid_argument, "what was printed is no secret: 12 to 1,024 printable characters, and nothing else");
  return secret_in(text);
}

}  // namespace

// What no list and no client names any more.
void Gate::forget_unbound(Workspace& workspace) {
  std::set<std::string> named;
  for (const auto& [domain, list] : workspace.settings.lists().of) {
    for (const egress::Binding& binding : list->bindings) named.insert(key_of(domain, binding));
    if (const auto upstream = workspace.settings.upstream_of(domain)) named.insert(key_of(*upstream));
  }
  for (auto it = workspace.held.begin(); it != workspace.held.end();) {
    const bool stays = named.contains(it->first);
    if (!stays && it->second.runs) commands_.forget(workspace.name, it->first);
    it = stays ? std::next(it) : workspace.held.erase(it);
  }
}

Result<Fd> Gate::secret_now(const Entry& entry, const std::string& domain, const egress::Binding& binding) {
  if (!binding.file.empty()) {
    stamps_[binding.file] = stamp_of(binding.file);  // before: what is written meanwhile is read once more
    return secret_of(binding.file);
  }
  const std::string key = key_of(domain, binding);
  const Held& held = entry->second.held[key];
  if (!held.value && held.begun_us == 0 && !binding.command.empty()) print(entry, key, binding.command, binding.refresh_seconds);
  if (!held.value) return no_secret();
  TRY_ASSIGN(const std::string text, secret_text(held.value));
  return secret_in(text);
}

// What its command has printed last. Without that the proxy is asked all the same, and says that it needs a credential.
Status Gate::credential_now(const Entry& entry, egress::Upstream& upstream) {
  if (upstream.command.empty()) {
    TRY_ASSIGN(const std::string text, credential_of(upstream.secret));
    return set_credential(upstream, text);
  }
  const std::string key = key_of(upstream);
  const Held& held = entry->second.held[key];
  if (!held.value && held.begun_us == 0) print(entry, key, upstream.command, 0);
  if (!held.value) return {};
  TRY_ASSIGN(const std::string text, secret_text(held.value));
  return set_credential(upstream, text);
}

void Gate::print(const Entry& entry, const std::string& key, const std::string& command, std::uint32_t seconds) {
  Held& held = entry->second.held[key];
  if (held.runs) return;
  const std::int64_t least_us = is_upstreams(key) ? kAgainUs : kUsedAgainUs, now_us = sys::monotonic_us();
  const bool soon = held.begun_us != 0 && now_us - held.begun_us < 2 * held.wait_us;
  held.wait_us = soon ? std::min(2 * held.wait_us, kMostWaitUs) : least_us;
  held.runs = true;
  held.begun_us = now_us;
  commands_.run(entry->second.name, key, command, "credential " + name_in(key),
                [this, number = entry->first, key, command, seconds](Result<std::string> text) {
                  const auto at = workspaces_.find(number);
                  if (at != workspaces_.end()) printed(at, key, command, seconds, std::move(text));
                });
}

// Where it failed, what it printed before stays in use, and it runs again when somebody needs it: a command that fails keeps no
// idle workspace going.
void Gate::printed(const Entry& entry, const std::string& key, const std::string& command, std::uint32_t seconds,
                   Result<std::string> text) {
  const auto held = entry->second.held.find(key);
  if (held == entry->second.held.end()) return;  // nobody names it any more
  auto value = text ? checked(key, *text) : std::unexpected(text.error());
  held->second.runs = held->second.used = held->second.due = false;
  if (value) held->second.value = std::move(*value);
  else failed(entry->second.name, "the command of secret " + name_in(key) + ": " + value.error().text());
  if (value) (void)tell(Told::start, JsonText().string("workspace", entry->second.name).string("printed", name_in(key)).text());
  if (value && seconds != 0) renew_later(entry, key, command, seconds);
  is_upstreams(key) ? tell_upstreams(entry) : tell_opener(entry);
}

// A secret that nobody uses is not asked for again, so that its command keeps no idle workspace going.
void Gate::renew_later(const Entry& of, const std::string& key, const std::string& command, std::uint32_t seconds) {
  Held& held = of->second.held[key];
  loop_.cancel(held.again);
  held.loop = &loop_;
  held.again = loop_.after(seconds * kSecondUs, [this, &held, workspace = of->first, key, command, seconds] {
    held.again = 0;
    if (held.used) print(workspaces_.find(workspace), key, command, seconds);
    else held.due = true;
  });
}

// The dialer waits for another credential: it is told in any case.
void Gate::unauthorized(const Entry& entry, const std::string& domain) {
  const auto upstream = entry->second.settings.upstream_of(domain);
  if (!upstream || upstream->command.empty()) return tell_upstream(entry, domain);
  const std::string key = key_of(*upstream);
  const Held& held = entry->second.held[key];
  if (held.runs) return;
  if (held.begun_us != 0 && sys::monotonic_us() - held.begun_us < held.wait_us) return tell_upstream(entry, domain);
  print(entry, key, upstream->command, 0);
}

// A request with secrets went out, or was refused without them. One that has not come, is old, or is not taken by the server is
// asked for again.
void Gate::used(const Entry& entry, const json::Value& record) {
  const auto domain = json::get_string(record, "domain");
  const auto secrets = record.find("secrets");
  if (!domain || !*domain || secrets == record.end()) return;
  const auto list = entry->second.settings.lists().of.find(**domain);
  if (list == entry->second.settings.lists().of.end()) return;
  const bool refused = record.value("status", json::Value()) == kUnauthorized;
  for (const egress::Binding& binding : list->second->bindings) {
    const auto held = entry->second.held.find(key_of(**domain, binding));
    const bool named = std::ranges::any_of(*secrets, [&binding](const json::Value& name) { return name == binding.name; });
    if (held == entry->second.held.end() || !named) continue;
    held->second.used = true;
    const bool lately = sys::monotonic_us() - held->second.begun_us < held->second.wait_us;
    if (!binding.command.empty() && (held->second.due || refused || !held->second.value) && !lately)
      print(entry, held->first, binding.command, binding.refresh_seconds);
  }
}

void Gate::hand_over(const Entry& entry, const Lines::From& from, const json::Value& request, const Lines::Reply& reply) {
  const auto name = text_of(request, "name");
  const auto secret = json::get_string(request, "secret");
  if (!from.operator_) return reply(fail(Code::permission_denied, "secrets are handed over at the control socket alone"));
  if (!name || !secret || !*secret) return reply(fail(Code::invalid_argument, "'name' and 'secret' are texts"));
  if (!(*secret)->empty() && !egress::is_secret(**secret))
    return reply(fail(Code::invalid_argument, "a secret has 12 to 1,024 printable characters, and nothing else"));
  json::Value domains = json::Value::array();
  for (const auto& [domain, list] : entry->second.settings.lists().of)
    for (const egress::Binding& binding : list->bindings)
      if (binding.name == *name && binding.file.empty() && binding.command.empty()) {
        auto value = (*secret)->empty() ? Result<Fd>() : secret_in(**secret);
        if (!value) return reply(std::unexpected(value.error()));
        entry->second.held[key_of(domain, binding)].value = std::move(*value);
        domains.push_back(domain);
      }
  if (domains.empty())
    return reply(
        fail(Code::not_found, "no policy has a secret " + quote(*name) + " that is to be handed over (\"handed\": true)"));
  (void)tell(
      Told::start,
      JsonText().string("workspace", entry->second.name).string((*secret)->empty() ? "taken_back" : "handed_over", *name).text());
  tell_opener(entry);
  reply(json::Value{{"name", *name}, {"domains", std::move(domains)}});
}

}  // namespace caisson::gate
