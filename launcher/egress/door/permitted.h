// What a list says of a place, as records and refusals have it.
#pragma once

#include <cstdint>

#include "launcher/egress/door/records.h"
#include "launcher/egress/list/grant.h"

namespace caisson::egress {

// False: `facts` says why not. `verdict` is what the list decided, and where it decides nothing the grant, if there is one.
// using_: the grant for one connection that this connection has used; becomes the one that it uses now.
struct Granted {
  Grants& grants;
  Asker asker;
  std::uint32_t& using_;
};
[[nodiscard]] bool permitted(const List& list, Granted granted, const Host& host, std::uint16_t port, Verdict& verdict,
                             Facts& facts);
// Whether an operator may allow what was refused, so that asking again helps.
[[nodiscard]] bool is_asked(const List& list, Refusal refusal);

}  // namespace caisson::egress
