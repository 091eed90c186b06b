// The secrets of one domain of a workspace, as they are at one moment. A change makes new ones; a request that has begun goes on
// with those it began with.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/list.h"
#include "launcher/egress/secret/replace.h"
#include "launcher/egress/secret/scrub.h"

namespace caisson::egress {

class Bindings {
 public:
  // Secrets of `before` whose bindings are still the same are kept.
  Bindings(const List& list, const Bindings* before);
  // nullptr: the domain has no binding of that name.
  [[nodiscard]] std::shared_ptr<const Bindings> with(std::string_view name, std::string secret) const;
  [[nodiscard]] const std::vector<Bound>& all() const { return all_; }
  [[nodiscard]] bool same(const Bindings& other) const;  // secrets, too
  // Of what that host may know.
  [[nodiscard]] const Forms& forms_of(const std::string& host) const;

 private:
  std::vector<Bound> all_;
  mutable std::map<std::string, Forms> forms_;
  Forms no_forms_{{}};
};

}  // namespace caisson::egress
