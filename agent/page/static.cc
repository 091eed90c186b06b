#include "agent/page/static.h"

#include <vendor_files.h>  // generated: kVendorFiles

#include <algorithm>

namespace caisson::routes::page {
namespace {

std::string_view type_of(std::string_view name) {
  return name.ends_with(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8";
}

}  // namespace

task<http::Response> get_static(Call call) {
  const std::string_view package = call.request.param("package"), name = call.request.param("file");
  const auto* const found =
      std::ranges::find_if(kVendorFiles, [&](const VendorFile& f) { return f.package == package && f.name == name; });
  if (found == std::end(kVendorFiles)) co_return http::error_response(404, "Not Found");
  const std::string tag = "\"" + std::string(found->sha256) + "\"";
  const bool known = call.request.header("if-none-match").value_or("").contains(tag);
  http::Response response =
      known ? http::text_response(304, "", "") : http::text_response(200, std::string(type_of(name)), std::string(found->text));
  response.headers = {{"cache-control", "public, max-age=31536000, immutable"}, {"etag", tag}};
  co_return response;
}

}  // namespace caisson::routes::page
