#include "agent/page/terminal.h"

#include <terminal_files.h>  // generated: kHtml, kStyle, kScript

#include "agent/page/document.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes::page {
namespace {

std::string replace_all(std::string text, std::string_view mark, std::string_view with) {
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + with.size()))
    text.replace(at, mark.size(), with);
  return text;
}

const std::string& document() {
  static const std::string made = replace_all(replace_all(std::string(terminal_files::kHtml), "@STYLE@", terminal_files::kStyle),
                                              "@SCRIPT@", terminal_files::kScript);
  return made;
}

}  // namespace

// A nonce, not the hashes of page/document.h: xterm.js makes style elements whose text is known only in the browser. Not 'self'
// either, because /proxy/ and downloads answer with what sessions wrote, from the same origin.
task<http::Response> get_terminal(Call call) {
  const std::string nonce = sys::random_hex(16);
  const std::string source = "'nonce-" + nonce + "'";
  co_return page_response(replace_all(document(), "@NONCE@", nonce),
                          "default-src 'none'; connect-src 'self'; img-src data:; style-src " + source + "; script-src " +
                              source +
                              "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                              "require-trusted-types-for 'script'; trusted-types 'none'",
                          call);
}

}  // namespace caisson::routes::page
