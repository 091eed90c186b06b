// Requests and answers of /tickets, /auth, /v1/page and /v1/tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"

namespace caisson::routes {

struct TicketRequest {
  std::optional<std::string> path, workspace;
  std::optional<std::int64_t> port;
  std::optional<bool> single_use;
};
struct TicketGrant {
  std::string ticket;
  std::int64_t expires_in = 0;
};
struct TokenRequest {
  std::string label;
  std::optional<std::string> workspace, path, terminal;
  std::optional<std::int64_t> port;
  std::optional<std::vector<std::string>> scopes;
  std::int64_t seconds = 0;
};
struct TokenInfo {
  std::string id, label, expires_at;
  std::optional<std::string> workspace, path, terminal;
  std::optional<std::int64_t> port;
  std::vector<std::string> scopes;
};
struct MintedToken {
  std::string token, id, expires_at;
};
struct TokenList {
  std::vector<TokenInfo> tokens;
};
struct PageLogin {
  std::optional<std::string> key, login;
};
struct PageLoginResult {
  std::string token, name;
};

template <>
struct Schema<TicketRequest> {
  static constexpr std::string_view name = "TicketRequest";
  static constexpr auto fields = std::tuple{
      field("path", &TicketRequest::path, "It is good for this path and what lies below it; without one, for all")
          .max_length(1024),
      field("workspace", &TicketRequest::workspace,
            "It is good for this workspace; without one, for that of X-Caisson-Workspace, or all that the key is good for")
          .max_length(63),
      field("port", &TicketRequest::port, "It is good for previews of this port alone").min(1).max(65'535),
      field("single_use", &TicketRequest::single_use, "Even a page or a WebSocket uses it up; any other request always does")};
};
template <>
struct Schema<TicketGrant> {
  static constexpr std::string_view name = "TicketGrant";
  static constexpr auto fields = std::tuple{field("ticket", &TicketGrant::ticket, "To be put into an address as ?ticket="),
                                            field("expires_in", &TicketGrant::expires_in, "Seconds")};
};
template <>
struct Schema<TokenRequest> {
  static constexpr std::string_view name = "TokenRequest";
  static constexpr auto fields = std::tuple{
      field("label", &TokenRequest::label, "Asked again with the same bounds, it gives the same token")
          .min_length(1)
          .max_length(128),
      field("workspace", &TokenRequest::workspace, "Good for this workspace alone").min_length(1).max_length(63),
      field("path", &TokenRequest::path, "Good for this path and what lies below it").min_length(1).max_length(1024),
      field(
          "terminal", &TokenRequest::terminal,
          "Good for watching the terminal of this shell session alone, without input; of the default workspace if none is named")
          .min_length(1)
          .max_length(128),
      field("port", &TokenRequest::port, "Good for previews of this port alone").min(1).max(65'535),
      field("scopes", &TokenRequest::scopes, "Areas of the API, such as bash or file:read; without them, those of the key"),
      field("seconds", &TokenRequest::seconds, "Its life, which ends with that of the key at the latest").min(1).max(31'536'000)};
};
template <>
struct Schema<TokenInfo> {
  static constexpr std::string_view name = "TokenInfo";
  static constexpr auto fields = std::tuple{field("id", &TokenInfo::id, "To revoke it"),
                                            field("label", &TokenInfo::label, "As it was made"),
                                            field("expires_at", &TokenInfo::expires_at, "RFC 3339, UTC"),
                                            field("workspace", &TokenInfo::workspace, "Its only one"),
                                            field("path", &TokenInfo::path, "Its only one"),
                                            field("terminal", &TokenInfo::terminal, "The shell session that it may watch"),
                                            field("port", &TokenInfo::port, "Its only one"),
                                            field("scopes", &TokenInfo::scopes, "Areas of the API; *: all")};
};
template <>
struct Schema<MintedToken> {
  static constexpr std::string_view name = "MintedToken";
  static constexpr auto fields =
      std::tuple{field("token", &MintedToken::token, "To be used like a key"), field("id", &MintedToken::id, "To revoke it"),
                 field("expires_at", &MintedToken::expires_at, "RFC 3339, UTC")};
};
template <>
struct Schema<TokenList> {
  static constexpr std::string_view name = "TokenList";
  static constexpr auto fields = std::tuple{field("tokens", &TokenList::tokens, "By label; not the tokens themselves")};
};
template <>
struct Schema<PageLogin> {
  static constexpr std::string_view name = "PageLoginRequest";
  static constexpr auto fields = std::tuple{
      field("key", &PageLogin::key, "An API key or a token").max_length(16'384),
      field("login", &PageLogin::login, "What the server put behind # in the page's address, instead of a key").max_length(128)};
};
template <>
struct Schema<PageLoginResult> {
  static constexpr std::string_view name = "PageLoginResult";
  static constexpr auto fields =
      std::tuple{field("token", &PageLoginResult::token, "To be sent as X-Caisson-Page with the cookie"),
                 field("name", &PageLoginResult::name, "The name of the key")};
};

}  // namespace caisson::routes
