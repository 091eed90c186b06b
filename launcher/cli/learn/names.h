// Which names a domain's sessions asked for, from the records of their connections and refusals: what becomes rules of `egress`.
// Whoever asked may be hostile, so each name is one rule of its own, never a pattern, never an address, and for a person to read.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/policy/policy.h"
#include "launcher/egress/list/list.h"

namespace caisson::cli::learn {

class Names {
 public:
  static constexpr std::size_t kMost = 200, kMostPorts = 16;
  // policy: the domain's, which is what is asked how much of it is permitted already.
  explicit Names(const policy::Policy& policy);
  // A record of an audit log, of whatever event and domain: those of others are passed over.
  void take(const json::Value& record);
  [[nodiscard]] bool empty() const { return asked_.empty(); }
  // Puts into a policy file that extends the domain: its own rules that allow, and one for each name. source: for the reasons.
  void add_to(json::Value& file, const std::string& source) const;
  // The same as lines "+ egress packages.example.org: 443".
  [[nodiscard]] std::string difference() const;
  // What was asked for and is not proposed, and why.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  struct Asked {
    std::set<std::uint16_t> ports;
    std::uint64_t refused = 0, made = 0;
  };
  [[nodiscard]] static json::Value rule(const std::string& name, const Asked& asked, const std::string& source);
  void leave_out(const std::string& host, const std::string& why);

  const std::string domain_;
  const policy::Network network_;
  const std::string rules_;  // the domain's list, as bytes
  egress::List list_;        // the same; empty where it has no way out
  std::map<std::string, Asked> asked_;
  std::map<std::string, std::string> left_out_;  // host -> why
  std::uint64_t beyond_ = 0;                     // records that were more than is kept
};

}  // namespace caisson::cli::learn
