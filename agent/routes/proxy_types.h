// Requests and answers of /v1/proxy, by the contract's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"

namespace caisson::routes {

struct ProxyMappingAdd {
  std::string source, target;
};
struct ProxyMappingRoute {
  std::string source, target, source_host;
  std::string source_path = "/";
  std::int64_t internal_port = 0;
};
struct ProxyBypass {
  std::string pattern;
};
struct ProxyDiagnosis {
  std::string url, route;
  std::optional<ProxyMappingRoute> matched_mapping;
  std::optional<std::string> resolved_target;
  bool target_reachable = false;
  std::string domain;
  std::vector<std::string> steps;
  std::optional<std::int64_t> rule;
  std::optional<std::string> why, refusal;
};
struct ProxyHealth {
  bool healthy = false, gost_alive = false, nginx_alive = false, config_consistent = false;
  std::vector<std::string> inconsistencies;
};
// Beyond the contract.
struct ProxyConnection {
  std::string time;
  bool refused = false;
  std::optional<std::string> session, domain, via, host;
  std::optional<std::int64_t> port, rule, status, up, down, ms;
  std::optional<std::string> address, why, refusal, detail, error, ended, method;
  std::optional<bool> alarm;
};
struct ProxyConnections {
  std::vector<ProxyConnection> connections;
};
struct ProxyUpstreamUpdate {
  std::string server;
  std::optional<std::string> auth_cmd;
};
struct ProxyUpstreamInfo {
  std::string addr;
  std::optional<std::string> username, password;
};

template <>
struct Schema<ProxyMappingAdd> {
  static constexpr std::string_view name = "ProxyMappingAddRequest";
  static constexpr auto fields = std::tuple{
      field("source", &ProxyMappingAdd::source,
            "[http://]host[:port][/path] of requests by plain HTTP: *.host for the names below one, /* behind a path"),
      field(
          "target", &ProxyMappingAdd::target,
          "[host:]port[/path]. Without a host, a server of the workspace itself; another host only where the policy permits it")};
};
template <>
struct Schema<ProxyMappingRoute> {
  static constexpr std::string_view name = "ProxyMappingRoute";
  static constexpr auto fields = std::tuple{
      field("source", &ProxyMappingRoute::source, "As it was given"),
      field("target", &ProxyMappingRoute::target, "Where requests are led"),
      field("source_host", &ProxyMappingRoute::source_host, "The host of the source"),
      field("source_path", &ProxyMappingRoute::source_path, "What a request's path begins with").defaulted(),
      field("internal_port", &ProxyMappingRoute::internal_port, "Where the door listens in the workspace, for every mapping")};
};
template <>
struct Schema<ProxyBypass> {
  static constexpr std::string_view name = "ProxyBypassRequest";
  static constexpr auto fields = std::tuple{field(
      "pattern", &ProxyBypass::pattern, "example.org, .example.org, *.example.org, an address, or a block such as 10.0.0.0/8")};
};
template <>
struct Schema<ProxyDiagnosis> {
  static constexpr std::string_view name = "ProxyDiagnoseResult";
  static constexpr auto fields = std::tuple{
      field("url", &ProxyDiagnosis::url, "What was asked about"),
      field("route", &ProxyDiagnosis::route, "denied, direct, upstream or mapping"),
      field("matched_mapping", &ProxyDiagnosis::matched_mapping, "The mapping that leads it elsewhere"),
      field("resolved_target", &ProxyDiagnosis::resolved_target, "Where the connection went"),
      field("target_reachable", &ProxyDiagnosis::target_reachable, "Whether it could be made; tried only where it is permitted")
          .defaulted(),
      field("domain", &ProxyDiagnosis::domain, "The policy domain whose sessions this holds for"),
      field("steps", &ProxyDiagnosis::steps, "What decided, one after the other"),
      field("rule", &ProxyDiagnosis::rule, "The rule of the policy's egress that decided; -1: none"),
      field("why", &ProxyDiagnosis::why, "Its reason"),
      field("refusal", &ProxyDiagnosis::refusal, "Why it is refused, in the word of records")};
};
template <>
struct Schema<ProxyHealth> {
  static constexpr std::string_view name = "ProxyHealthCheck";
  static constexpr auto fields =
      std::tuple{field("healthy", &ProxyHealth::healthy, "All of the others"),
                 field("gost_alive", &ProxyHealth::gost_alive, "Whether the door, which sessions connect to, runs"),
                 field("nginx_alive", &ProxyHealth::nginx_alive, "Whether the dialer, which connects for it, runs"),
                 field("config_consistent", &ProxyHealth::config_consistent, "Whether both have what is in force"),
                 field("inconsistencies", &ProxyHealth::inconsistencies, "What is wrong").defaulted()};
};
template <>
struct Schema<ProxyConnection> {
  static constexpr std::string_view name = "ProxyConnection";
  static constexpr auto fields =
      std::tuple{field("time", &ProxyConnection::time, "When it ended, or was refused"),
                 field("refused", &ProxyConnection::refused, "Whether it was refused").defaulted(),
                 field("session", &ProxyConnection::session, "The session that asked; none where it is not known"),
                 field("domain", &ProxyConnection::domain, "Its policy domain"),
                 field("via", &ProxyConnection::via, "transparent, connect, http, socks5, dns, or opened: its TLS was"),
                 field("host", &ProxyConnection::host, "The name or address that was asked for"),
                 field("port", &ProxyConnection::port, "The port"),
                 field("rule", &ProxyConnection::rule, "The rule of the policy's egress that decided; -1: none"),
                 field("status", &ProxyConnection::status, "What a proxy or server answered, as a status of HTTP"),
                 field("up", &ProxyConnection::up, "Bytes from the session"),
                 field("down", &ProxyConnection::down, "Bytes to the session"),
                 field("ms", &ProxyConnection::ms, "How long it lasted, in milliseconds"),
                 field("address", &ProxyConnection::address, "Where it led"),
                 field("why", &ProxyConnection::why, "The rule's reason"),
                 field("refusal", &ProxyConnection::refusal, "Why it was refused, in the word of records"),
                 field("detail", &ProxyConnection::detail, "The same in more words"),
                 field("error", &ProxyConnection::error, "Why a permitted connection could not be made"),
                 field("ended", &ProxyConnection::ended, "How it ended"),
                 field("method", &ProxyConnection::method, "Of a request where TLS is opened"),
                 field("alarm", &ProxyConnection::alarm, "true: nobody does this by mistake")};
};
template <>
struct Schema<ProxyConnections> {
  static constexpr std::string_view name = "ProxyConnections";
  static constexpr auto fields = std::tuple{field("connections", &ProxyConnections::connections, "The newest first")};
};
template <>
struct Schema<ProxyUpstreamUpdate> {
  static constexpr std::string_view name = "ProxyUpstreamUpdateRequest";
  static constexpr auto fields = std::tuple{
      field("server", &ProxyUpstreamUpdate::server,
            "host:port or user:password@host:port; with http://, https:// or socks5:// in front, user and password "
            "are percent-encoded. The "
            "policy must let a domain connect to it"),
      field("auth_cmd", &ProxyUpstreamUpdate::auth_cmd,
            "A command of /bin/sh that prints user:password, in a session of the domain `credentials`; where the policy "
            "permits it (`egress_auth_cmd`)")};
};
template <>
struct Schema<ProxyUpstreamInfo> {
  static constexpr std::string_view name = "ProxyUpstreamInfo";
  static constexpr auto fields =
      std::tuple{field("addr", &ProxyUpstreamInfo::addr, "host:port; in front https:// or socks5://, if it is one"),
                 field("username", &ProxyUpstreamInfo::username, "User name, if it has a credential"),
                 field("password", &ProxyUpstreamInfo::password, "Always null")};
};

}  // namespace caisson::routes
