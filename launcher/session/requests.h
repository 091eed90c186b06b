// Members of requests, checked: types, sizes and words, whatever the client has checked before.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "launcher/base/json.h"
#include "launcher/policy/policy.h"
#include "launcher/session/init_link.h"

namespace caisson::session {

[[nodiscard]] Result<std::string> need_string(const json::Value& body, std::string_view key);
// Unknown members are refused: a misspelt narrowing must not be a wider session.
[[nodiscard]] Status only(const json::Value& body, std::initializer_list<std::string_view> known);
[[nodiscard]] Result<int> signal_number(const std::string& name);
[[nodiscard]] Result<ExecRequest> exec_request(const json::Value& body, const policy::Policy& policy);

}  // namespace caisson::session
