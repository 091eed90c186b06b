// What a request that the opener has read becomes: placeholders that stand where a binding permits them are replaced by their
// secrets. A placeholder anywhere else in the head is no mistake that could be passed over: somebody tries where it works.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/binding.h"
#include "launcher/egress/parse/http_head.h"

namespace caisson::egress {

struct Bound {
  Binding binding;
  std::string secret;                    // "": it has not come yet
  std::vector<std::string> before = {};  // the last ones, which a server may still say, and take
};

struct Replaced {
  Refusal refusal = Refusal::none;  // placeholder_elsewhere, placeholder_unbound, framing
  std::string_view detail;          // of it, a literal
  bool searched = false;            // a secret is bound to the host: its answer is asked for in a form that can be searched
  std::vector<const Bound*> used;   // whose secrets are in `text`; of a refusal, whose placeholder it is
  std::string text;                 // the head to be sent on; of a refusal nothing
};

// bounds: all of the session's domain, for whichever host. place: where the request goes, whose certificate was verified.
[[nodiscard]] Replaced replace(const RequestHead& head, const HostPort& place, std::span<const Bound> bounds);

}  // namespace caisson::egress
