// GET /v1/openapi.json, and a plain page for people at /v1/docs and /: one table, no script, nothing loaded from elsewhere.
#include "agent/derive/openapi.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string row_html(const Route& route) {
  const std::string method(route.endpoint.websocket != nullptr ? "WS" : http::method_name(route.method));
  return "<tr><td>" + method + "</td><td><code>" + escape(route.path) + "</code></td><td>" + escape(route.summary) +
         ((route.flags & kPublic) != 0 ? "</td><td>no</td></tr>\n" : "</td><td>yes</td></tr>\n");
}

std::string page() {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Caisson</title>\n<style>body{font:15px/1.5 "
      "sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}td,th{text-align:left;padding:.2rem .8rem .2rem "
      "0}</style></head>\n<body><h1>Caisson " CAISSON_VERSION
      "</h1>\n<p>The full description is <a href=\"/v1/openapi.json\">/v1/openapi.json</a>. Send the API key as "
      "<code>X-AIO-API-Key</code>, <code>Authorization: Bearer</code> or <code>?api_key=</code>.</p>\n"
      "<table><tr><th>Method</th><th>Path</th><th>What it does</th><th>Key</th></tr>\n";
  for (const Route* route : all_routes())
    if ((route->flags & kHidden) == 0) out += row_html(*route);
  return out + "</table></body></html>\n";
}

// The table is constant, so both documents are made once.
task<http::Response> get_openapi(Call) {
  static const std::string document = json::dump(derive::openapi(all_routes()));
  co_return http::text_response(200, "application/json", document);
}

task<http::Response> get_docs(Call) {
  static const std::string document = page();
  http::Response response = http::text_response(200, "text/html; charset=utf-8", document);
  response.headers = {{"content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"},
                      {"referrer-policy", "no-referrer"}};  // the key may be in the URL
  co_return response;
}

constexpr Route kDocs[] = {
    {http::Method::get, "/v1/openapi.json", "openapi", Scope::system, kHidden, Unknown::ignore, "This API as OpenAPI 3.1",
     bind<get_openapi>()},
    {http::Method::get, "/v1/docs", "docs", Scope::system, kHidden, Unknown::ignore, "This API as a page", bind<get_docs>()},
    {http::Method::get, "/", "index", Scope::system, kHidden, Unknown::ignore, "This API as a page", bind<get_docs>()},
};

}  // namespace

Area docs_routes() { return kDocs; }

}  // namespace caisson::routes
