// GET / and /caisson/: the home page, for people; it begins with the overview or with the sessions. GET /terminal: a shell
// session in the browser, and /codex and /opencode one that begins with that program; /vnc/: the screen. GET /v1/docs: the API
// with a form for each operation, which the page makes from /v1/openapi.json. They answer without a key and ask for it
// themselves. /static/: third parties' files for them.
#include <docs_files.h>  // generated: kHtml, kStyle, kScript of each
#include <page_files.h>

#include "agent/page/document.h"
#include "agent/page/static.h"
#include "agent/page/terminal.h"
#include "agent/page/vnc.h"
#include "agent/routes/coding.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

task<http::Response> get_page(Call call) {
  static const page::Document document(page::page_files::kHtml, page::page_files::kStyle, page::page_files::kScript);
  co_return document.response(call);
}

task<http::Response> get_docs(Call call) {
  static const page::Document document(page::docs_files::kHtml, page::docs_files::kStyle, page::docs_files::kScript);
  co_return document.response(call);
}

task<http::Response> get_codex(Call call) { co_return coding_page(call, "codex"); }
task<http::Response> get_opencode(Call call) { co_return coding_page(call, "opencode"); }

using http::Method;

constexpr Route kPages[] = {
    {Method::get, "/", "home", Scope::system, kHidden | kPage, Unknown::ignore,
     "What runs and what was refused, files, ports: as a page", bind<get_page>()},
    {Method::get, "/index.html", "home_by_name", Scope::system, kHidden | kPage, Unknown::ignore, "The same", bind<get_page>()},
    {Method::get, "/caisson/", "page", Scope::system, kHidden | kPage, Unknown::ignore, "The same", bind<get_page>()},
    {Method::get, "/caisson", "page_without_slash", Scope::system, kHidden | kPage, Unknown::ignore, "The same",
     bind<get_page>()},
    {Method::get, "/v1/docs", "docs", Scope::system, kHidden | kPage, Unknown::ignore, "This API as a page", bind<get_docs>()},
    {Method::get, "/terminal", "terminal_page", Scope::system, kHidden | kPage, Unknown::ignore, "A terminal as a page",
     bind<page::get_terminal>()},
    {Method::get, "/codex", "codex_page", Scope::system, kHidden | kPage, Unknown::ignore, "A terminal with Codex",
     bind<get_codex>()},
    {Method::get, "/opencode", "opencode_page", Scope::system, kHidden | kPage, Unknown::ignore, "A terminal with OpenCode",
     bind<get_opencode>()},
    {Method::get, "/vnc/", "screen_page", Scope::system, kHidden | kPage, Unknown::ignore, "The screen as a page",
     bind<page::get_vnc>()},
    {Method::get, "/vnc/index.html", "screen_page_by_name", Scope::system, kHidden | kPage, Unknown::ignore, "The same",
     bind<page::get_vnc>()},
    {Method::get, "/vnc/vnc.html", "screen_page_as_novnc", Scope::system, kHidden | kPage, Unknown::ignore,
     "The same, by the name that noVNC gives it", bind<page::get_vnc>()},
    {Method::get, "/static/{package}/{file}", "static_file", Scope::system, kHidden | kPublic, Unknown::ignore,
     "A third party's file for a page", bind<page::get_static>()},
};

}  // namespace

Area page_routes() { return kPages; }

}  // namespace caisson::routes
