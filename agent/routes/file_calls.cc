#include "agent/routes/file_calls.h"

#include "agent/services/common/text.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::routes {

std::string text_in(const json::Value& head, std::string_view key) { return services::to_utf8(json::text_of(head, key)); }

std::int64_t number_in(const json::Value& head, std::string_view key) { return json::number_of(head, key).value_or(0); }

Result<json::Value> list_in(const std::string& bytes) {
  auto list = json::parse(bytes, {.max_bytes = 17u << 20, .max_depth = 8, .max_values = 2'000'000});
  if (!list || !list->is_array()) return fail(Code::io, "the file worker answered without a list");
  return list;
}

std::string iso_time(std::int64_t ns) { return sys::rfc3339(ns); }

http::Response answer_failure(const services::FileFailure& why, const FileOperation& operation, const std::string& path) {
  return file_failure(file_error(why, operation, path));
}

}  // namespace caisson::routes
