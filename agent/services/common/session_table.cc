#include "agent/services/common/session_table.h"

namespace caisson::services {

Status check_isolation(const bridge::SessionHandle& existing, std::optional<bool> wanted) {
  if (!wanted || *wanted == existing.isolated) return {};
  return fail(Code::already_exists,
              std::string("there is a session of this id, made with isolation ") + (existing.isolated ? "private" : "shared"));
}

bool valid_session_id(const std::string& id) {
  if (id.empty() || id.size() > 128 || id == "." || id == "..") return false;
  for (const char c : id)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '/') return false;
  return true;
}

Status check_session_id(const char* member, const std::string& id) {
  if (id.empty() || valid_session_id(id)) return {};
  return fail(Code::invalid_argument,
              std::string(member) + " is longer than 128 bytes, has a slash or control characters, or is a dot name");
}

}  // namespace caisson::services
