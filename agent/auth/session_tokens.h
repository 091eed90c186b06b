// Session tokens: credentials of programs in sessions, where the policy of their domain opens areas of the API (`api`). A token
// is good for requests that come out of the network of its workspace, and for no other: whoever reads it in a transcript or a log
// can do nothing with it. Its areas are those that the policy has when it is used. All end with the process, and each with its
// workspace.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/auth/life.h"
#include "agent/auth/secret.h"

namespace caisson::auth {

class SessionTokens {
 public:
  struct Token {
    std::string id, workspace, domain;
    LifePtr life;  // of the workspace
  };

  // The same for all sessions of that domain in that workspace.
  [[nodiscard]] std::string secret_for(const std::string& workspace, const std::string& domain, LifePtr life);
  [[nodiscard]] const Token* by_secret(std::string_view secret) const;
  [[nodiscard]] const Token* by_id(std::string_view id) const;
  void drop_over();

 private:
  SecretMaker maker_{"cs_"};
  std::map<std::string, Token, std::less<>> tokens_;  // by id; at most one for each domain of each workspace
};

}  // namespace caisson::auth
