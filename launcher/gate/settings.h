// What clients have set of a workspace's way out, and the container's variables before them: they route, or narrow, what the
// policy permits. It is kept here, so that door and dialer may end; it ends with the gate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/egress/list/lists.h"
#include "launcher/egress/list/mapping.h"
#include "launcher/egress/list/upstream.h"

namespace caisson::gate {

class Settings {
 public:
  // What the container's variables say. An error names the variable.
  [[nodiscard]] static Result<Settings> at_start();
  // The lists in force. What was set under older ones stays, and is judged by the new ones at each use.
  void set_lists(egress::Lists lists) { lists_ = std::move(lists); }
  [[nodiscard]] const egress::Lists& lists() const { return lists_; }
  [[nodiscard]] std::optional<egress::Upstream> upstream_of(const std::string& domain) const;
  [[nodiscard]] const egress::Mappings& mappings() const { return mappings_; }
  // Whether a mapping leads to that port of the workspace's own loopback.
  [[nodiscard]] bool leads_inside(std::uint16_t port) const;
  [[nodiscard]] json::Value shown() const;

  // A change of way_ops.h. For the record: what it is about, and what it is now; two empty texts: nothing changed. Errors are the
  // client's, and say what to do.
  struct Changed {
    const char* what = "";
    std::string to = {};
  };
  [[nodiscard]] Result<Changed> change(const std::string& op, const json::Value& request);

 private:
  // The proxy that the policy of some domain names, which clients do not change.
  [[nodiscard]] std::optional<egress::Upstream> of_policy() const;
  [[nodiscard]] bool clients_command() const;  // they may say which prints a credential
  [[nodiscard]] Result<Changed> set_upstream(const json::Value& request);
  [[nodiscard]] Result<Changed> add_exclude(const json::Value& request);
  [[nodiscard]] Result<Changed> remove_exclude(const json::Value& request);
  [[nodiscard]] Result<Changed> add_mapping(const json::Value& request);
  [[nodiscard]] Result<Changed> remove_mapping(const json::Value& request);
  [[nodiscard]] Result<Changed> exclude(std::string_view text);
  [[nodiscard]] Result<Changed> add(egress::Mapping mapping);

  egress::Lists lists_;
  std::optional<egress::Upstream> upstream_;
  // As the container's variables have them, for the sessions of operators.
  std::optional<egress::Upstream> own_upstream_;
  std::vector<egress::Pattern> excludes_;
  egress::Mappings mappings_;
};

// A member that a request must have.
[[nodiscard]] Result<std::string> text_of(const json::Value& request, const char* member);
// As clients see it: ProxyMappingRoute of the contract.
[[nodiscard]] json::Value mapping_json(const egress::Mapping& mapping);

}  // namespace caisson::gate
