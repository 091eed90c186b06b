#include "agent/auth/minted.h"

#include <algorithm>

#include "agent/auth/shares.h"

namespace caisson::auth {
namespace {

// A key of the operator's sees all that it could have made. The users of one signing key know nothing of each other.
bool is_seen(const MintedTokens::Token& token, const Principal& principal) {
  return token.bounds.within(principal.bounds) && (principal.subject.empty() || token.minter == principal.subject);
}

}  // namespace

Result<const MintedTokens::Token*> MintedTokens::mint(const Principal& minter, std::string label, Bounds bounds,
                                                      std::int64_t ends, std::int64_t now, LifePtr workspace) {
  std::erase_if(tokens_, [&](const auto& item) { return item.second.ends <= now; });
  // A label is the minter's own: no other key, and no other workspace, learns of it by a conflict.
  for (auto& [id, token] : tokens_) {
    if (token.label != label || token.minter != minter.holder() || token.minter_root != minter.root ||
        token.minter_workspace != minter.bounds.workspace)
      continue;
    if (token.bounds != bounds) return fail(Code::already_exists, "a token with this label has other bounds");
    token.ends = std::max(token.ends, ends);
    return &token;
  }
  const auto minter_of = [](const auto& item) -> std::string_view { return item.second.minter; };
  const auto own = std::ranges::count_if(tokens_, [&](const auto& item) { return item.second.minter == minter.holder(); });
  if (static_cast<std::size_t>(own) >= kShare)
    return fail(Code::limit, "this credential has made " + std::to_string(kShare) + " tokens that have not ended");
  if (tokens_.size() >= kMaxTokens) {
    const auto largest = largest_group(tokens_, minter_of, [](const auto&) { return true; });
    if (static_cast<std::size_t>(own) >= largest.second)
      return fail(Code::limit, "there are " + std::to_string(kMaxTokens) + " tokens");
    auto soonest = tokens_.end();
    for (auto at = tokens_.begin(); at != tokens_.end(); ++at)
      if (minter_of(*at) == largest.first && (soonest == tokens_.end() || at->second.ends < soonest->second.ends)) soonest = at;
    tokens_.erase(soonest);
  }
  std::string id = SecretMaker::new_id();
  Token token{id,   std::move(label),    minter.root, minter.holder(), minter.bounds.workspace, std::move(bounds),
              ends, std::move(workspace)};
  return &tokens_.emplace(std::move(id), std::move(token)).first->second;
}

const MintedTokens::Token* MintedTokens::by_secret(std::string_view secret, std::int64_t now) const {
  const auto id = maker_.id_of(secret);
  return id ? by_id(*id, now) : nullptr;
}

const MintedTokens::Token* MintedTokens::by_id(std::string_view id, std::int64_t now) const {
  const auto at = tokens_.find(id);
  return at != tokens_.end() && now < at->second.ends ? &at->second : nullptr;
}

void MintedTokens::drop_over() {
  std::erase_if(tokens_, [](const auto& item) { return item.second.workspace && item.second.workspace->over(); });
}

std::vector<const MintedTokens::Token*> MintedTokens::seen_by(const Principal& principal, std::int64_t now) const {
  std::vector<const Token*> out;
  for (const auto& [id, token] : tokens_)
    if (now < token.ends && is_seen(token, principal)) out.push_back(&token);
  std::ranges::sort(out, {}, &Token::label);
  return out;
}

bool MintedTokens::revoke(const Principal& principal, std::string_view id, std::int64_t now) {
  const Token* token = by_id(id, now);
  if (token == nullptr || !is_seen(*token, principal)) return false;
  tokens_.erase(tokens_.find(id));
  return true;
}

}  // namespace caisson::auth
