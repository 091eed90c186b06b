// What the launcher attests (launcher/common/attest/statement.schema.json): of the boot, and of one session. Every claim comes
// from the kernel or from what the launcher did, none from the agent or a session.
#pragma once

#include "launcher/pid1/session/domains.h"
#include "launcher/pid1/session/entry.h"
#include "launcher/pid1/session/host.h"

namespace caisson::session {

[[nodiscard]] json::Value boot_statement(const Host& host, const Domains& domains);
[[nodiscard]] json::Value session_statement(const Host& host, const Entry& entry);

}  // namespace caisson::session
