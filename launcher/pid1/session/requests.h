// Members of requests, checked: types, sizes and words, whatever the client has checked before.
#pragma once

#include <string>
#include <string_view>

#include "launcher/common/base/json.h"
#include "launcher/common/confine/init_link.h"
#include "launcher/common/ipc/ops.h"
#include "launcher/common/policy/policy.h"

namespace caisson::session {

[[nodiscard]] Result<std::string> need_string(const json::Value& body, std::string_view key);
// Whether a request has the members of its operation, and comes from whom it is for. Unknown members are refused: a misspelt
// narrowing must not be a wider session.
[[nodiscard]] Status fits(const json::Value& body, const ipc::OpRow& row, ipc::Role role);
[[nodiscard]] Result<int> signal_number(const std::string& name);
[[nodiscard]] Result<confine::ExecRequest> exec_request(const json::Value& body, const policy::Policy& policy);

}  // namespace caisson::session
