#include "agent/auth/session_tokens.h"

#include <algorithm>

namespace caisson::auth {

std::string SessionTokens::secret_for(const std::string& workspace, const std::string& domain, LifePtr life) {
  for (const auto& [id, token] : tokens_)
    if (token.workspace == workspace && token.domain == domain && !token.life->over()) return maker_.secret_of(id);
  std::string id = SecretMaker::new_id();
  std::string secret = maker_.secret_of(id);
  tokens_.emplace(id, Token{id, workspace, domain, std::move(life)});
  return secret;
}

const SessionTokens::Token* SessionTokens::by_secret(std::string_view secret) const {
  const auto id = maker_.id_of(secret);
  return id ? by_id(*id) : nullptr;
}

const SessionTokens::Token* SessionTokens::by_id(std::string_view id) const {
  const auto found = tokens_.find(id);
  return found != tokens_.end() && !found->second.life->over() ? &found->second : nullptr;
}

void SessionTokens::drop_over() {
  std::erase_if(tokens_, [](const auto& entry) { return entry.second.life->over(); });
}

}  // namespace caisson::auth
