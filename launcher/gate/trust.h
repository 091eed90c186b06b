// The file by which sessions of domains that bind a secret believe the opener (common/egress/trust.h).
#pragma once

#include <string>
#include <string_view>

#include "launcher/common/base/result.h"

namespace caisson::gate {

// Whether it is one certificate in PEM: what an opener that was taken over says goes into the file as it is.
[[nodiscard]] bool is_certificate(std::string_view text);
// Writes the system's authorities, the operator's, and `authority`, which may be "" as yet, into a file that is there. In place,
// for sessions have it mounted; what has not changed is not touched, so that nobody meets half of it.
[[nodiscard]] Status write_trust(const std::string& path, std::string_view authority);
// Lets other users pass the launcher's own directory to it: where nothing is mounted, sessions read it there. What else is there
// they can open by its mode alone, which is the launcher's.
[[nodiscard]] Status show_trust(const std::string& path);

}  // namespace caisson::gate
