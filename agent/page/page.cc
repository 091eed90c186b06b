// GET /caisson/: what runs here and what confines it, for people. GET /v1/docs and /: the API, with a form for each operation,
// made by the page of /v1/openapi.json.
#include <docs_files.h>  // generated: kHtml, kStyle, kScript of each
#include <page_files.h>

#include "agent/page/document.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

task<http::Response> get_page(Call) {
  static const page::Document document(page::page_files::kHtml, page::page_files::kStyle, page::page_files::kScript);
  co_return document.response();
}

task<http::Response> get_docs(Call) {
  static const page::Document document(page::docs_files::kHtml, page::docs_files::kStyle, page::docs_files::kScript);
  co_return document.response();
}

using http::Method;

constexpr Route kPage[] = {
    {Method::get, "/caisson/", "page", Scope::system, kHidden, Unknown::ignore, "Sessions, walls and denials, as a page",
     bind<get_page>()},
    {Method::get, "/caisson", "page_without_slash", Scope::system, kHidden, Unknown::ignore, "The same", bind<get_page>()},
    {Method::get, "/v1/docs", "docs", Scope::system, kHidden, Unknown::ignore, "This API as a page", bind<get_docs>()},
    {Method::get, "/", "index", Scope::system, kHidden, Unknown::ignore, "The same", bind<get_docs>()},
};

}  // namespace

Area page_routes() { return kPage; }

}  // namespace caisson::routes
