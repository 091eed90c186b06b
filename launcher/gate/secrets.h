// Secrets that are bound in a workspace's lists, on their way from files that the launcher may read to the opener. Those of files
// are here only while they are handed on; the others (credentials.cc) are kept as such memory files.
#pragma once

#include <string>
#include <string_view>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::gate {

// What the file has, without a line's end, as a memory file that nobody can change any more. An error says what is wrong with it,
// and nothing that is in it.
[[nodiscard]] Result<Fd> secret_of(const std::string& path);
// The same, of text that stands in no file.
[[nodiscard]] Result<Fd> secret_in(std::string_view text);
// What such a memory file has.
[[nodiscard]] Result<std::string> secret_text(const Fd& secret);
// In its place where there is none: what the opener had before is not used any more.
[[nodiscard]] Result<Fd> no_secret();
// What the file of an upstream proxy's credential has: at most kMaxCredentialFile bytes, without a line's end.
inline constexpr std::size_t kMaxCredentialFile = 1024;
[[nodiscard]] Result<std::string> credential_of(const std::string& path);

// Random bytes likewise, which nobody has but who has the file (common/egress/protocol.h, Order::seed).
[[nodiscard]] Result<Fd> new_seed();

}  // namespace caisson::gate
