#include "launcher/common/confine/user_ns.h"

#include <cstdio>
#include <string>

#include "launcher/common/base/sys.h"

namespace caisson::confine {
namespace {

Status write_map(const std::string& path, unsigned inner, unsigned outer) {
  TRY(sys::write_file(path, std::to_string(inner) + " " + std::to_string(outer) + " 1\n"));
  TRY_ASSIGN(const std::string map, sys::read_file(path, 4096));
  unsigned got_inner = 0, got_outer = 0, got_length = 0;
  int used = 0;
  if (std::sscanf(map.c_str(), "%u %u %u %n", &got_inner, &got_outer, &got_length, &used) != 3 || got_inner != inner ||
      got_outer != outer || got_length != 1 || static_cast<std::size_t>(used) != map.size())
    return fail(Code::internal, "id map " + path + " is not what was written: " + quote(map));
  return {};
}

}  // namespace

Status write_id_maps(pid_t pid, uid_t outer_uid, gid_t outer_gid) {
  if (outer_uid == 0 || outer_gid == 0) return fail(Code::internal, "refusing to map outer id 0");
  const std::string base = "/proc/" + std::to_string(pid) + "/";
  // Denied for good: inside, supplementary groups can neither be added nor dropped (a dropped group may be a denied one).
  TRY(sys::write_file(base + "setgroups", "deny"));
  TRY(write_map(base + "uid_map", kInnerUid, outer_uid));
  return write_map(base + "gid_map", kInnerGid, outer_gid);
}

}  // namespace caisson::confine
