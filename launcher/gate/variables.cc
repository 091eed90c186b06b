// The variables of the container that route what goes out (wire/gate_protocol.h): what clients find set in every workspace.
#include <algorithm>
#include <cstdlib>

#include "launcher/gate/settings.h"

namespace caisson::gate {
namespace {

constexpr std::string_view kServer = "PROXY_SERVER", kCommand = "PROXY_AUTH_CMD", kInclude = "PROXY_INCLUDE",
                           kExclude = "PROXY_EXCLUDE", kMap = "PROXY_MAP";

std::string_view text_of(std::string_view variable) {
  const char* const value = std::getenv(std::string(variable).c_str());
  return value != nullptr ? value : "";
}

std::vector<std::string> items_of(std::string_view variable) {
  std::vector<std::string> out;
  for (std::string_view rest = text_of(variable); !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    std::string_view item = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    item.remove_prefix(std::min(item.find_first_not_of(" \t\n"), item.size()));
    item = item.substr(0, item.find_last_not_of(" \t\n") + 1);
    if (!item.empty()) out.emplace_back(item);
  }
  return out;
}

std::unexpected<Error> wrong(std::string_view variable, Error why) {
  return std::unexpected(std::move(why).wrap(std::string(variable)));
}

}  // namespace

Result<Settings> Settings::at_start() {
  Settings out;
  const std::string_view command = text_of(kCommand);
  if (!command.empty() && !egress::is_command(command))
    return wrong(kCommand, fail(Code::invalid_argument, "is not one line of at most 1,000 bytes").error());
  if (const std::string_view server = text_of(kServer); !server.empty()) {
    auto upstream = egress::read_server(server);
    if (!upstream) return wrong(kServer, upstream.error());
    upstream->of_policy = true;  // the operator's word on where it is, as a policy's
    for (const std::string& text : items_of(kInclude)) {
      auto pattern = egress::read_pattern(text);
      if (!pattern) return wrong(kInclude, pattern.error());
      upstream->include.push_back(std::move(*pattern));
    }
    if (upstream->include.size() > egress::kMaxPolicyPatterns)
      return wrong(kInclude, fail(Code::limit, "has more than 64 hosts").error());
    if (patterns_size(upstream->include) > egress::kMaxPatternBytes)
      return wrong(kInclude, fail(Code::limit, "has hosts with more than 6 KiB together").error());
    upstream->command = command;
    out.upstream_ = std::move(*upstream);
  } else if (!items_of(kInclude).empty() || !command.empty()) {
    return wrong(command.empty() ? kInclude : kCommand,
                 fail(Code::invalid_argument, "belongs to PROXY_SERVER, which is not set").error());
  }
  for (const std::string& text : items_of(kExclude))
    if (auto done = out.exclude(text); !done) return wrong(kExclude, done.error());
  if ((out.own_upstream_ = out.upstream_)) out.own_upstream_->exclude = out.excludes_;
  for (const std::string& text : items_of(kMap)) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
      return wrong(kMap, fail(Code::invalid_argument, quote(text) + " is not source=target").error());
    auto mapping = egress::read_mapping(text.substr(0, equals), text.substr(equals + 1));
    if (!mapping) return wrong(kMap, mapping.error());
    if (auto done = out.add(std::move(*mapping)); !done) return wrong(kMap, done.error());
  }
  return out;
}

}  // namespace caisson::gate
