#include "launcher/pid1/session/requests.h"

#include <signal.h>

#include <cstring>
#include <set>

#include "launcher/common/confine/environment.h"
#include "launcher/common/policy/text_checks.h"

namespace caisson::session {
namespace {

Result<std::vector<std::string>> string_list(const json::Value& body, const char* key) {
  const auto it = body.find(key);
  if (it == body.end() || !it->is_array() || it->empty())
    return fail(Code::invalid_argument, "'" + std::string(key) + "' must be a list of strings");
  std::vector<std::string> out;
  for (const auto& v : *it) {
    if (!v.is_string()) return fail(Code::invalid_argument, "'" + std::string(key) + "' must be a list of strings");
    out.push_back(v.get<std::string>());
  }
  return out;
}

Result<std::map<std::string, std::optional<std::string>>> environment(const json::Value& body) {
  std::map<std::string, std::optional<std::string>> out;
  const auto it = body.find("env");
  if (it == body.end() || it->is_null()) return out;
  if (!it->is_object()) return fail(Code::invalid_argument, "'env' must be an object");
  for (const auto& [name, value] : it->items()) {
    if (!value.is_string() && !value.is_null())
      return fail(Code::invalid_argument, "env " + quote(name) + " must be a string or null");
    out[name] = value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
  }
  return out;
}

Result<std::uint32_t> pty_side(const json::Value& pty, const char* key, std::int64_t fallback) {
  TRY_ASSIGN(const auto value, json::get_int(pty, key));
  if (value.value_or(fallback) < 1 || value.value_or(fallback) > 4096)
    return fail(Code::invalid_argument, "'pty." + std::string(key) + "' must be 1 to 4096");
  return static_cast<std::uint32_t>(value.value_or(fallback));
}

}  // namespace

Result<std::string> need_string(const json::Value& body, std::string_view key) {
  TRY_ASSIGN(auto value, json::get_string(body, key));
  if (!value) return fail(Code::invalid_argument, "'" + std::string(key) + "' is missing");
  return std::move(*value);
}

Status fits(const json::Value& body, const ipc::OpRow& row, ipc::Role role) {
  if (row.only && *row.only != role) return fail(Code::permission_denied, "this operation is not for this client");
  std::set<std::string> left;
  std::string missing;
  for (const auto& [key, value] : body.items()) left.insert(key);
  left.erase("id"), left.erase("op");
  for (std::ptrdiff_t i = 0; !row.members.empty() && i < count_words(row.members); ++i) {
    const std::string_view name = word(row.members, static_cast<std::size_t>(i));
    const bool needed = name.starts_with('!');
    if (left.erase(std::string(name.substr(needed ? 1 : 0))) == 0 && needed) missing = name.substr(1);
  }
  if (!left.empty()) return fail(Code::invalid_argument, "unknown member " + quote(*left.begin()));
  if (!missing.empty()) return fail(Code::invalid_argument, "'" + missing + "' is missing");
  return {};
}

Result<int> signal_number(const std::string& name) {
  if (name.starts_with("SIG"))
    for (int s = 1; s < NSIG; ++s)
      if (const char* known = ::sigabbrev_np(s); known != nullptr && name.substr(3) == known) return s;
  return fail(Code::invalid_argument, "unknown signal " + quote(name));
}

Result<confine::ExecRequest> exec_request(const json::Value& body, const policy::Policy& policy) {
  confine::ExecRequest request;
  TRY_ASSIGN(request.argv, string_list(body, "argv"));
  TRY_ASSIGN(const auto cwd, json::get_string(body, "cwd"));
  request.cwd = cwd.value_or(policy.home_path);
  if (request.cwd.empty() || request.cwd[0] != '/' || request.cwd.size() > policy::kMaxPath ||
      request.cwd.find('\0') != std::string::npos)
    return fail(Code::invalid_argument, "'cwd' must be an absolute path: " + quote(request.cwd));
  TRY_ASSIGN(const auto asked, environment(body));
  TRY_ASSIGN(request.env, make_environment(policy.env, asked));
  if (const auto pty = body.find("pty"); pty != body.end() && !pty->is_null()) {
    if (!pty->is_object()) return fail(Code::invalid_argument, "'pty' must be an object");
    request.pty = true;
    TRY_ASSIGN(request.cols, pty_side(*pty, "cols", 80));
    TRY_ASSIGN(request.rows, pty_side(*pty, "rows", 24));
  }
  return request;
}

}  // namespace caisson::session
