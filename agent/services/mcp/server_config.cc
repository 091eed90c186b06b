#include "agent/services/mcp/server_config.h"

#include <algorithm>
#include <functional>

#include "launcher/common/tables/lines.h"

namespace caisson::services {
namespace {

constexpr std::size_t kMostText = 4096, kMostItems = 256;
constexpr json::Bounds kConfigBounds{.max_bytes = 1024 * 1024, .max_depth = 8, .max_values = 64 * 1024};

bool is_name(std::string_view name) {
  const auto known = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, known);
}
bool is_prefix(std::string_view prefix) {
  const auto known = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
  return prefix.size() <= 64 && std::ranges::all_of(prefix, known);
}

Status wrong(std::string what) { return fail(Code::invalid_argument, std::move(what)); }

Status read_text(const json::Value& value, std::string& to) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kMostText ||
      value.get_ref<const std::string&>().find('\0') != std::string::npos)
    return wrong("must be text of at most " + std::to_string(kMostText) + " bytes");
  to = value.get<std::string>();
  return {};
}

Status read_texts(const json::Value& value, std::vector<std::string>& to) {
  if (!value.is_array() || value.size() > kMostItems) return wrong("must be a list of texts");
  for (const json::Value& item : value) TRY(read_text(item, to.emplace_back()));
  return {};
}

Status read_map(const json::Value& value, std::map<std::string, std::string>& to) {
  if (!value.is_object() || value.size() > kMostItems) return wrong("must be an object of texts");
  for (const auto& [name, text] : value.items()) {
    if (name.empty() || name.find_first_of(std::string_view("=\0\r\n: ", 6)) != std::string::npos)
      return wrong(quote(name) + " is no name");
    TRY(read_text(text, to[name]));
  }
  return {};
}

Status read_files(const json::Value& value, std::map<std::string, std::string>& to) {
  TRY(read_map(value, to));
  for (const auto& [name, path] : to)
    if (!path.starts_with("/etc/caisson/mcp/") || path.contains("/../"))
      return wrong(quote(name) + ": the file must be below /etc/caisson/mcp");
  return {};
}

Status read_flag(const json::Value& value, bool& to) {
  if (!value.is_boolean()) return wrong("must be true or false");
  to = value.get<bool>();
  return {};
}

Status read_seconds(const json::Value& value, std::chrono::seconds& to) {
  if (!value.is_number_integer() || value < 1 || value > 86'400) return wrong("must be a number of seconds from 1 to 86400");
  to = std::chrono::seconds(value.get<std::int64_t>());
  return {};
}

struct RuleMember {
  std::string_view name;
  Patterns ServerRule::* to;
};
constexpr RuleMember kRuleMembers[] = {
    {"identities", &ServerRule::identities}, {"allow", &ServerRule::allow}, {"block", &ServerRule::block}};

Status read_rules(const json::Value& value, std::vector<ServerRule>& to) {
  if (!value.is_array() || value.size() > kMostItems) return wrong("must be a list of rules");
  for (const json::Value& given : value) {
    if (!given.is_object()) return wrong("a rule is an object");
    ServerRule& rule = to.emplace_back();
    for (const auto& [name, part] : given.items()) {
      const auto member = std::ranges::find(kRuleMembers, name, &RuleMember::name);
      if (member == std::end(kRuleMembers)) return wrong("a rule has no member " + quote(name));
      TRY(read_texts(part, rule.*(member->to)));
    }
    if (rule.identities.empty()) return wrong("a rule needs identities");
  }
  return {};
}

struct Member {
  std::string_view name;
  Status (*read)(const json::Value&, ServerConfig&);
};
constexpr Member kMembers[] = {
    {"command", [](const json::Value& v, ServerConfig& c) { return read_text(v, c.argv.emplace_back()); }},
    {"args", [](const json::Value& v, ServerConfig& c) { return read_texts(v, c.argv); }},
    {"env", [](const json::Value& v, ServerConfig& c) { return read_map(v, c.env); }},
    {"envFiles", [](const json::Value& v, ServerConfig& c) { return read_files(v, c.env_files); }},
    {"cwd", [](const json::Value& v, ServerConfig& c) { return read_text(v, c.cwd); }},
    {"domain", [](const json::Value& v, ServerConfig& c) { return read_text(v, c.domain); }},
    {"url", [](const json::Value& v, ServerConfig& c) { return read_text(v, c.url); }},
    {"headers", [](const json::Value& v, ServerConfig& c) { return read_map(v, c.headers); }},
    {"headerFiles", [](const json::Value& v, ServerConfig& c) { return read_files(v, c.header_files); }},
    {"prefix", [](const json::Value& v, ServerConfig& c) { return read_text(v, c.prefix); }},
    {"allow", [](const json::Value& v, ServerConfig& c) { return read_texts(v, c.allow); }},
    {"block", [](const json::Value& v, ServerConfig& c) { return read_texts(v, c.block); }},
    {"rules", [](const json::Value& v, ServerConfig& c) { return read_rules(v, c.rules); }},
    {"tags", [](const json::Value& v, ServerConfig& c) { return read_texts(v, c.tags); }},
    {"hidden", [](const json::Value& v, ServerConfig& c) { return read_flag(v, c.hidden); }},
    {"disabled", [](const json::Value& v, ServerConfig& c) { return read_flag(v, c.disabled); }},
    {"pin", [](const json::Value& v, ServerConfig& c) { return read_text(v, c.pin); }},
    {"timeout", [](const json::Value& v, ServerConfig& c) { return read_seconds(v, c.timeout); }},
    {"idle", [](const json::Value& v, ServerConfig& c) { return read_seconds(v, c.idle); }},
};

bool is_pin(std::string_view pin) {
  if (pin == "first" || pin == "off") return true;
  return pin.size() == 64 &&
         std::ranges::all_of(pin, [](unsigned char c) { return std::isxdigit(c) != 0 && std::isupper(c) == 0; });
}

bool matches_one(std::string_view pattern, std::string_view name) {
  // Without recursion: at a mismatch, the last star takes one more character.
  std::size_t p = 0, n = 0, star = std::string_view::npos, mark = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool passes(const Patterns& allow, const Patterns& block, std::string_view tool) {
  return !matches(block, tool) && (allow.empty() || matches(allow, tool));
}

}  // namespace

Result<ServerConfig> parse_server(const std::string& name, const json::Value& given) {
  ServerConfig out;
  out.name = name;
  out.prefix = name + "_";
  if (!is_name(name)) return fail(Code::invalid_argument, "a server's name is 1 to 64 letters, digits, '_' and '-'");
  if (!given.is_object()) return fail(Code::invalid_argument, "a server is an object");
  std::string type;
  // In the table's order: the command is before its arguments.
  for (const Member& member : kMembers)
    if (const auto value = given.find(member.name); value != given.end())
      if (Status read = member.read(*value, out); !read) return std::unexpected(std::move(read).error().wrap(member.name));
  for (const auto& [key, value] : given.items()) {
    if (key == "description") {
      std::string text;
      TRY(read_text(value, text));
    } else if (key == "type" || key == "transport") {
      TRY(read_text(value, type));
    } else if (key == "revision") {
      std::string revision;
      TRY(read_text(value, revision));
      if (revision != "2025-11-25" && revision != "2026-07-28")
        return fail(Code::invalid_argument, "revision must be 2025-11-25 or 2026-07-28");
      out.newest = revision == "2026-07-28";
    } else if (std::ranges::find(kMembers, key, &Member::name) == std::end(kMembers)) {
      return fail(Code::invalid_argument, "there is no member " + quote(key));
    }
  }
  if (out.argv.empty() == out.url.empty()) return fail(Code::invalid_argument, "needs either a command or a url");
  if (!given.contains("command") && !out.argv.empty()) return fail(Code::invalid_argument, "args without a command");
  if (!out.url.empty() && !out.url.starts_with("https://") && !out.url.starts_with("http://"))
    return fail(Code::invalid_argument, "url must begin with https:// or http://");
  static constexpr std::string_view kTypes[] = {"", "stdio", "http", "streamable-http", "streamableHttp", "sse"};
  if (std::ranges::find(kTypes, type) == std::end(kTypes) ||
      (type == "stdio" ? out.argv.empty() : !type.empty() && out.url.empty()))
    return fail(Code::invalid_argument, "type must be stdio for a command, and http or sse for a url");
  out.events = type == "sse";
  if (out.domain.empty() && !out.url.empty())
    return fail(Code::invalid_argument, "a url needs a domain, such as mcp-" + name + ", whose policy permits to reach it");
  if (out.domain.empty()) out.domain = "mcp";
  if (out.domain != "mcp" && !out.domain.starts_with("mcp-"))
    return fail(Code::invalid_argument, "domain must be mcp, or begin with mcp-");
  if (!is_prefix(out.prefix)) return fail(Code::invalid_argument, "prefix is at most 64 letters, digits, '_', '-' and '.'");
  if (!is_pin(out.pin)) return fail(Code::invalid_argument, "pin must be first, off or a SHA-256 digest in hexadecimal");
  return out;
}

bool matches(const Patterns& patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [name](const std::string& pattern) { return matches_one(pattern, name); });
}

bool ServerConfig::permits(std::string_view identity) const {
  return rules.empty() || std::ranges::any_of(rules, [&](const ServerRule& r) { return matches(r.identities, identity); });
}

bool ServerConfig::permits(std::string_view identity, std::string_view tool) const {
  if (!passes(allow, block, tool)) return false;
  if (rules.empty()) return true;
  return std::ranges::any_of(
      rules, [&](const ServerRule& r) { return matches(r.identities, identity) && passes(r.allow, r.block, tool); });
}

Result<std::vector<ServerConfig>> parse_servers(std::string_view text) {
  json::Lines lines;
  TRY_ASSIGN(const json::Value given, json::parse_with_lines(text, kConfigBounds, lines));
  if (!given.is_object()) return fail(Code::invalid_argument, "must be an object");
  const bool wrapped = given.contains("mcpServers");
  const json::Value& servers = wrapped ? given["mcpServers"] : given;
  if (!servers.is_object()) return fail(Code::invalid_argument, "mcpServers must be an object");
  if (servers.size() > kMostServers)
    return fail(Code::invalid_argument, "at most " + std::to_string(kMostServers) + " servers can be configured");
  std::vector<ServerConfig> out;
  for (const auto& [name, server] : servers.items()) {
    Result<ServerConfig> read = parse_server(name, server);
    if (read) {
      if (!read->disabled) out.push_back(std::move(*read));
      continue;
    }
    const auto line = lines.find((wrapped ? "/mcpServers/" : "/") + json::pointer_token(name));
    const std::string where = line == lines.end() ? "" : "line " + std::to_string(line->second) + ": ";
    return std::unexpected(std::move(read).error().wrap(where + "server " + quote(name)));
  }
  return out;
}

}  // namespace caisson::services
