// Requests and answers of /v1/proxy/asks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"

namespace caisson::routes {

struct Asked {
  std::int64_t id = 0, port = 0, times = 1, seconds_ago = 0;
  std::optional<std::string> session;
  std::string domain, host, refusal;
  std::vector<std::string> programs;
};
struct Granted {
  std::int64_t id = 0, port = 0, seconds_left = 0;
  std::optional<std::string> session;
  std::string domain, host;
  bool once = false, used = false;
};
struct Asks {
  std::vector<Asked> asked;
  std::vector<Granted> granted;
};
struct AskAllow {
  std::string for_;
  std::optional<std::int64_t> seconds;
};
struct AskRule {
  std::string host, why;
  std::vector<std::int64_t> ports;
};
struct AskDecided {
  std::int64_t id = 0, port = 0;
  std::string ask, by, domain, host;
  std::optional<std::string> who, session, for_;
  std::optional<std::int64_t> seconds;
  std::optional<AskRule> rule;
};

template <>
struct Schema<Asked> {
  static constexpr std::string_view name = "Asked";
  static constexpr auto fields = std::tuple{
      field("id", &Asked::id, "Its number"),
      field("session", &Asked::session, "The session that asked; none where sessions are not told apart"),
      field("domain", &Asked::domain, "Its policy domain"),
      field("host", &Asked::host, "The name or address that it was refused"),
      field("port", &Asked::port, "The port"),
      field("refusal", &Asked::refusal, "Why, in the word of records: not_listed, port or unresolved"),
      field("programs", &Asked::programs, "Names of the session's programs at the first refusal, as they call themselves"),
      field("times", &Asked::times, "How often"),
      field("seconds_ago", &Asked::seconds_ago, "When last")};
};
template <>
struct Schema<Granted> {
  static constexpr std::string_view name = "Granted";
  static constexpr auto fields =
      std::tuple{field("id", &Granted::id, "Its number, which records of connections have as `grant`"),
                 field("session", &Granted::session, "For this session alone; none: for all of the domain"),
                 field("domain", &Granted::domain, "The policy domain"),
                 field("host", &Granted::host, "The name or address"),
                 field("port", &Granted::port, "The port"),
                 field("once", &Granted::once, "For one connection"),
                 field("used", &Granted::used, "Which was made"),
                 field("seconds_left", &Granted::seconds_left, "Until it ends")};
};
template <>
struct Schema<Asks> {
  static constexpr std::string_view name = "Asks";
  static constexpr auto fields =
      std::tuple{field("asked", &Asks::asked, "The oldest first"), field("granted", &Asks::granted, "What is in force")};
};
template <>
struct Schema<AskAllow> {
  static constexpr std::string_view name = "AskAllowRequest";
  static constexpr auto fields = std::tuple{
      field("for", &AskAllow::for_,
            "once: one connection of the session, within ten minutes; session: the session's connections, for a day at "
            "most; time: those of all sessions of the domain, for `seconds`; policy: allows nothing, answers with the rule "
            "that the policy takes"),
      field("seconds", &AskAllow::seconds, "With time alone: 1 to 86400")};
};
template <>
struct Schema<AskRule> {
  static constexpr std::string_view name = "AskRule";
  static constexpr auto fields = std::tuple{field("host", &AskRule::host, "As in a policy's `egress`"),
                                            field("ports", &AskRule::ports, "As there"), field("why", &AskRule::why, "As there")};
};
template <>
struct Schema<AskDecided> {
  static constexpr std::string_view name = "AskDecided";
  static constexpr auto fields =
      std::tuple{field("id", &AskDecided::id, "Its number"),
                 field("ask", &AskDecided::ask, "allow, deny or revoke"),
                 field("by", &AskDecided::by, "operator or api, as the audit log has it"),
                 field("domain", &AskDecided::domain, "The policy domain"),
                 field("host", &AskDecided::host, "The name or address"),
                 field("port", &AskDecided::port, "The port"),
                 field("who", &AskDecided::who, "The name of the credential"),
                 field("session", &AskDecided::session, "The session that asked"),
                 field("for", &AskDecided::for_, "As it was allowed"),
                 field("seconds", &AskDecided::seconds, "For how long"),
                 field("rule", &AskDecided::rule, "For the policy's `egress`, where that was asked for")};
};

}  // namespace caisson::routes
