// Where downloads go. A client names a folder of its own machine (playwright, browser-use), to which the browser session has no
// right: every download of that client, and with Page.setDownloadBehavior of others, would fail.
#pragma once

#include <string>
#include <string_view>

#include "agent/cdp/scan.h"

namespace caisson::cdp {

[[nodiscard]] inline std::string downloads_folder(const std::string& home) { return home + "/Downloads"; }

// The message with `behavior: default` instead of such a folder: downloads then land in `folder`, under their own names, as the
// policy DownloadDirectory has it. "": the message passes as it is, because it asks for no folder, or for one below `folder`, or
// has more than 64 KiB.
[[nodiscard]] std::string with_downloads_in(std::string_view folder, std::string_view text, const Message& message);

}  // namespace caisson::cdp
