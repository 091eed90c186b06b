// What a list says of a place, as records and refusals have it.
#pragma once

#include <cstdint>

#include "launcher/egress/door/records.h"
#include "launcher/egress/list/list.h"

namespace caisson::egress {

// False: `facts` says why not. `verdict` is what the list decided.
[[nodiscard]] bool permitted(const List& list, const Host& host, std::uint16_t port, Verdict& verdict, Facts& facts);

}  // namespace caisson::egress
