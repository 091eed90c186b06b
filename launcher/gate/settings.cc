#include "launcher/gate/settings.h"

#include <algorithm>
#include <utility>

#include "launcher/common/base/session_id.h"
#include "launcher/common/base/word.h"
#include "launcher/common/capture/capture.h"
#include "launcher/common/tables/way_ops.h"

namespace caisson::gate {
namespace {

using egress::Mapping;
using egress::Pattern;
using egress::Upstream;

constexpr std::size_t kMostExcludes = 128;
constexpr const char* kNamed = "the policy names the upstream proxy (`upstream`): clients set no other, and do not take it away";

std::optional<way::Op> op_of(std::string_view name) {
  constexpr std::string_view kNames = words(way::Op{});
  for (std::size_t i = 0; std::cmp_less(i, count_words(kNames)); ++i)
    if (word(kNames, i) == name) return static_cast<way::Op>(i);
  return std::nullopt;
}

// Whether the list lets somebody connect there: a name's addresses are judged when it is connected to.
bool permits(const egress::List& list, const egress::Host& host, std::uint16_t port) {
  const egress::Verdict verdict = decide(list, host, port);
  const auto* address = std::get_if<egress::Address>(&host);
  return verdict.kind == egress::Verdict::Kind::allow &&
         (address == nullptr || address_permitted(list, verdict, host, *address, port));
}

bool permits(const egress::Lists& lists, const egress::Host& host, std::uint16_t port) {
  return std::ranges::any_of(lists.of, [&](const auto& list) { return permits(*list.second, host, port); });
}

std::unexpected<Error> not_permitted(const std::string& place) {
  return fail(Code::permission_denied,
              "no domain of the policy may connect to " + place + ": its \"egress\" needs a rule with this host and port");
}

}  // namespace

Result<std::string> text_of(const json::Value& request, const char* member) {
  TRY_ASSIGN(auto text, json::get_string(request, member));
  if (!text || text->empty()) return fail(Code::invalid_argument, std::string("'") + member + "' is missing");
  return std::move(*text);
}

json::Value mapping_json(const Mapping& mapping) {
  return {{"source", mapping.source},
          {"target", place_text(mapping) + mapping.to_path.value_or("")},
          {"source_host", mapping.host.text},
          {"source_path", mapping.path},
          {"internal_port", capture::kDoorPort}};
}

// Clients lead the sessions of no operator: a command that prints a credential goes where the policy says.
std::optional<Upstream> Settings::upstream_of(const std::string& domain) const {
  const auto list = lists_.of.find(domain);
  if (list != lists_.of.end() && !list->second->upstream.empty()) {
    auto named = egress::read_upstream(list->second->upstream);  // a list with one that cannot be read is none
    if (named) return std::move(*named);
  }
  if (domain == kCredentialsDomain) return own_upstream_;
  if (!upstream_) return std::nullopt;
  Upstream out = *upstream_;
  if (!out.of_policy && !clients_command()) out.command.clear();
  out.exclude.insert(out.exclude.end(), excludes_.begin(), excludes_.end());
  return out;
}

bool Settings::clients_command() const {
  return std::ranges::any_of(lists_.of, [](const auto& one) { return one.second->client_commands; });
}

std::optional<Upstream> Settings::of_policy() const {
  for (const auto& [domain, list] : lists_.of)
    if (!list->upstream.empty()) return upstream_of(domain);
  return std::nullopt;
}

bool Settings::leads_inside(std::uint16_t port) const {
  return std::ranges::any_of(mappings_, [port](const Mapping& one) { return one.inside && one.to_port == port; });
}

json::Value Settings::shown() const {
  json::Value upstream = nullptr, excludes = json::Value::array(), mappings = json::Value::array();
  const auto named = of_policy();
  if (const Upstream* one = named ? &*named : upstream_ ? &*upstream_ : nullptr) {
    upstream = {{"addr", server_text(*one)}, {"username", nullptr}, {"password", nullptr}};  // which nobody is ever told
    if (!one->user.empty()) upstream["username"] = one->user;
  }
  for (const Pattern& pattern : excludes_) excludes.push_back(pattern.text);
  for (const Mapping& mapping : mappings_) mappings.push_back(mapping_json(mapping));
  return {{"upstream", std::move(upstream)},
          {"excludes", std::move(excludes)},
          {"mappings", std::move(mappings)},
          {"port", capture::kDoorPort}};
}

Result<Settings::Changed> Settings::set_upstream(const json::Value& request) {
  TRY_ASSIGN(const std::string server, text_of(request, "server"));
  TRY_ASSIGN(Upstream upstream, egress::read_server(server));
  TRY_ASSIGN(const auto command, json::get_string(request, "auth_cmd"));
  if (of_policy()) return fail(Code::permission_denied, kNamed);
  if (command && !clients_command())
    return fail(Code::permission_denied, "no policy lets clients say which command runs (\"egress_auth_cmd\": true)");
  if (command && !egress::is_command(*command))
    return fail(Code::invalid_argument, "'auth_cmd' must be one line of at most 1,000 bytes");
  upstream.command = command.value_or("");
  if (!permits(lists_, upstream.host, upstream.port)) return not_permitted(server_text(upstream));
  upstream_ = std::move(upstream);
  return Changed{"upstream", server_text(*upstream_)};
}

Result<Settings::Changed> Settings::add_exclude(const json::Value& request) {
  TRY_ASSIGN(const std::string text, text_of(request, "pattern"));
  return exclude(text);
}

Result<Settings::Changed> Settings::exclude(std::string_view text) {
  TRY_ASSIGN(Pattern pattern, egress::read_pattern(text));
  if (std::ranges::find(excludes_, pattern.text, &Pattern::text) != excludes_.end()) return Changed();
  if (excludes_.size() >= kMostExcludes)
    return fail(Code::limit, "there are " + std::to_string(kMostExcludes) + " excludes, and no more are possible");
  excludes_.push_back(std::move(pattern));
  if (patterns_size(excludes_) <= egress::kMaxPatternBytes) return Changed{"exclude", excludes_.back().text};
  excludes_.pop_back();
  return fail(Code::limit, "the excludes may have " + std::to_string(egress::kMaxPatternBytes) +
                               " bytes together: remove some, or name what they have in common (\"*.example.org\")");
}

Result<Settings::Changed> Settings::remove_exclude(const json::Value& request) {
  TRY_ASSIGN(const std::string text, text_of(request, "pattern"));
  const auto pattern = egress::read_pattern(text);
  const std::string& meant = pattern ? pattern->text : text;
  if (std::erase_if(excludes_, [&meant](const Pattern& one) { return one.text == meant; }) == 0)
    return fail(Code::not_found, "no exclude " + quote(text));
  return Changed{"exclude_removed", meant};
}

Result<Settings::Changed> Settings::add_mapping(const json::Value& request) {
  TRY_ASSIGN(const std::string source, text_of(request, "source"));
  TRY_ASSIGN(const std::string target, text_of(request, "target"));
  TRY_ASSIGN(Mapping mapping, egress::read_mapping(source, target));
  if (!mapping.inside && !permits(lists_, mapping.to_host, mapping.to_port)) return not_permitted(place_text(mapping));
  return add(std::move(mapping));
}

// One with this source takes the place of another.
Result<Settings::Changed> Settings::add(Mapping mapping) {
  if (mapping.inside && mapping.to_port == capture::kDoorPort)
    return fail(Code::invalid_argument, quote(mapping.target) + " is the way out itself");
  const std::string source = mapping.source;
  egress::Mappings now = mappings_;
  std::erase_if(now, [&source](const Mapping& one) { return one.source == source; });
  now.push_back(std::move(mapping));
  if (now.size() > egress::kMaxMappings || mapping_bytes(now).size() > egress::kMaxMappingBytes)
    return fail(Code::limit, "there are " + std::to_string(mappings_.size()) + " mappings, and no more are possible");
  mappings_ = std::move(now);
  return Changed{"mapping", source + " -> " + place_text(mappings_.back())};
}

Result<Settings::Changed> Settings::remove_mapping(const json::Value& request) {
  TRY_ASSIGN(const std::string source, text_of(request, "source"));
  if (std::erase_if(mappings_, [&source](const Mapping& one) { return one.source == source; }) == 0)
    return fail(Code::not_found, "no mapping with the source " + quote(source));
  return Changed{"mapping_removed", source};
}

Result<Settings::Changed> Settings::change(const std::string& name, const json::Value& request) {
  using way::Op;
  const auto op = op_of(name);
  if (op == Op::get) return Changed();
  if (op == Op::set_upstream) return set_upstream(request);
  if (op == Op::add_exclude) return add_exclude(request);
  if (op == Op::remove_exclude) return remove_exclude(request);
  if (op == Op::add_mapping) return add_mapping(request);
  if (op == Op::remove_mapping) return remove_mapping(request);
  if (op != Op::remove_upstream) return fail(Code::invalid_argument, "no operation " + quote(name));
  if (of_policy()) return fail(Code::permission_denied, kNamed);
  upstream_.reset();
  return Changed{"upstream", "none"};
}

}  // namespace caisson::gate
