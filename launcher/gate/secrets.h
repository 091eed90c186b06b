// Secrets that are bound in a workspace's lists, on their way from files that the launcher may read to the opener. They are in
// this process only while they are handed on.
#pragma once

#include <string>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::gate {

// What the file has, without a line's end, as a memory file that nobody can change any more. An error says what is wrong with it,
// and nothing that is in it.
[[nodiscard]] Result<Fd> secret_of(const std::string& path);
// In its place where there is none: what the opener had before is not used any more.
[[nodiscard]] Result<Fd> no_secret();
// What the file of an upstream proxy's credential has: at most kMaxCredentialFile bytes, without a line's end.
inline constexpr std::size_t kMaxCredentialFile = 1024;
[[nodiscard]] Result<std::string> credential_of(const std::string& path);

// Random bytes likewise, which nobody has but who has the file (common/egress/protocol.h, Order::seed).
[[nodiscard]] Result<Fd> new_seed();

}  // namespace caisson::gate
