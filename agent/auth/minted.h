// Minted tokens: credentials that a client makes from its own, narrower and with an end, to hand on: for one workspace, one port
// of previews, or one page. A token is an id and its MAC (secret.h), so it is not kept and can still be given again: the same
// label with the same bounds yields the same token. All end with the process, and each with the key of its minter.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/auth/principal.h"
#include "agent/auth/secret.h"

namespace caisson::auth {

class MintedTokens {
 public:
  static constexpr std::size_t kMaxTokens = 4096, kShare = 512;  // kShare: of one minter

  struct Token {
    std::string id, label, minter_root;
    std::string minter;  // Principal::holder()
    std::optional<std::string> minter_workspace;
    Bounds bounds;
    std::int64_t ends;  // seconds since 1970
    LifePtr workspace;  // of the one in its bounds
  };

  // bounds: within the minter's; ends: not after it. already_exists: the minter has another token with this label. limit: it
  // has kShare of them. With kMaxTokens alive, a minter with fewer than another takes the place of that one's soonest to end.
  [[nodiscard]] Result<const Token*> mint(const Principal& minter, std::string label, Bounds bounds, std::int64_t ends,
                                          std::int64_t now, LifePtr workspace = nullptr);
  [[nodiscard]] std::string secret_of(const Token& token) const { return maker_.secret_of(token.id); }
  [[nodiscard]] const Token* by_secret(std::string_view secret, std::int64_t now) const;
  [[nodiscard]] const Token* by_id(std::string_view id, std::int64_t now) const;
  // Those within the bounds of this principal: all that it could have minted; of the users of a signing key, one's own.
  [[nodiscard]] std::vector<const Token*> seen_by(const Principal& principal, std::int64_t now) const;
  void drop_over();
  bool revoke(const Principal& principal, std::string_view id, std::int64_t now);

 private:
  SecretMaker maker_{"ct_"};
  std::map<std::string, Token, std::less<>> tokens_;  // by id
};

}  // namespace caisson::auth
