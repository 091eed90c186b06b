#include "agent/page/terminal.h"

#include <terminal_files.h>  // generated: kHtml, kStyle, kScript

#include "agent/page/document.h"

namespace caisson::routes::page {

task<http::Response> get_terminal(Call call) {
  static const NonceDocument document(terminal_files::kHtml, terminal_files::kStyle, terminal_files::kScript);
  co_return document.response(call);
}

}  // namespace caisson::routes::page
