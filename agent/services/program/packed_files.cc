#include "agent/services/program/packed_files.h"

#include "agent/frames/base64.h"

namespace caisson::services {

void PackedFiles::add(std::string_view path, std::string_view bytes) {
  list.push_back({{"path", path}, {"bytes", bytes.size()}});
  body += bytes;
}

Result<PackedFiles> pack_files(const std::map<std::string, std::string>& base64) {
  PackedFiles out;
  for (const auto& [path, content] : base64) {
    const auto bytes = frames::base64_decode(content);
    if (!bytes) return fail(Code::invalid_argument, "file " + quote(path) + " cannot be written: its content is not base64");
    out.add(path, *bytes);
  }
  return out;
}

Status check_fetched(std::size_t count) {
  if (count <= kMostFetched) return {};
  return fail(Code::limit, "fetch_files names more than " + std::to_string(kMostFetched) + " files");
}

}  // namespace caisson::services
