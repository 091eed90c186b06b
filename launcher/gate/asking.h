// What the sessions of a workspace were refused because no rule names it, and what of it was allowed: proposals, which end with
// silence, and grants (egress/list/grant.h), which end with their time. Of domains whose policy says who may be asked
// (`egress_ask`). What door and opener say of refusals may be forged; a person decides.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/egress/list/grant.h"
#include "launcher/egress/list/lists.h"

namespace caisson::gate {

class Asking {
 public:
  static constexpr std::size_t kMostProposals = 32;  // of the session with most of them the one refused longest ago makes room
  static constexpr std::size_t kMostDenied = 256;    // the oldest makes room
  static constexpr std::int64_t kProposalUs = 600'000'000;  // after the last refusal
  static constexpr std::int64_t kOnceUs = 600'000'000, kMostSeconds = 86'400, kSessionUs = kMostSeconds * 1'000'000;

  // Newer lists: what is of a domain that asks nobody any more is gone.
  void set_lists(const egress::Lists& lists);
  // Of the record of a refusal; programs: of the session, asked only for a new proposal. The proposal's number; 0: nobody is
  // asked.
  std::uint32_t refused(const json::Value& record, const egress::Lists& lists, const std::function<json::Value()>& programs,
                        std::int64_t now_us);
  // way::Op::allow, deny and revoke, by the operator or by the agent for a client. Returns the decision, for the record. Errors
  // are for the client, and say what to do.
  [[nodiscard]] Result<json::Value> decide(const std::string& op, const json::Value& request, const egress::Lists& lists,
                                           bool by_operator, std::int64_t now_us);
  // Of way::Op::asks.
  [[nodiscard]] json::Value shown(std::int64_t now_us) const;
  // A grant for one connection was used.
  void used(std::uint32_t grant);
  // What is in force; what is over is gone.
  [[nodiscard]] egress::Grants in_force(std::int64_t now_us);
  [[nodiscard]] std::int64_t due_us() const;  // when the next grant ends; 0: there is none

 private:
  struct Proposal {
    std::uint32_t id = 0;
    std::string session, domain, refusal;
    egress::Host host;
    std::uint16_t port = 0;
    json::Value programs;
    std::int64_t times = 1, last_us = 0;
  };
  struct Given {
    egress::Grant grant;
    std::int64_t until_us = 0;
  };
  using Place = std::tuple<std::string, egress::Host, std::uint16_t>;  // of a domain
  [[nodiscard]] Result<json::Value> allow(const Proposal& proposal, const json::Value& request, std::int64_t now_us);
  void forget_late(std::int64_t now_us);
  void make_room();
  [[nodiscard]] static std::uint32_t first_number();

  // Numbers do not begin anew with a workspace or a gate: whoever decides what was listed before decides nothing else.
  std::uint32_t last_ = first_number();
  std::deque<Proposal> proposals_;
  std::deque<Place> denied_;
  std::vector<Given> given_;
};

}  // namespace caisson::gate
