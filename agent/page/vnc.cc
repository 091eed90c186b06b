#include "agent/page/vnc.h"

#include <vnc_files.h>  // generated: kHtml, kStyle, kScript

#include "agent/page/document.h"

namespace caisson::routes::page {

task<http::Response> get_vnc(Call call) {
  static const NonceDocument document(vnc_files::kHtml, vnc_files::kStyle, vnc_files::kScript);
  co_return document.response(call, call.services.frame_ancestors);
}

}  // namespace caisson::routes::page
