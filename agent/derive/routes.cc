// GET /v1/openapi.json and /llms.txt. The table is constant, so each document is made once. The manual needs the key, like every
// description of the API here: a client without a key does not learn which paths exist. Whoever lets a model work with this
// server has the key.
#include "agent/derive/llms.h"
#include "agent/derive/openapi.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

task<http::Response> get_openapi(Call) {
  static const std::string document = json::dump(derive::openapi(all_routes()));
  co_return http::text_response(200, "application/json", document);
}

task<http::Response> get_llms(Call) {
  static const std::string manual = derive::llms_text(all_routes());
  co_return http::text_response(200, "text/markdown; charset=utf-8", manual);
}

constexpr Route kDerived[] = {
    {http::Method::get, "/v1/openapi.json", "openapi", Scope::system, kHidden, Unknown::ignore, "This API as OpenAPI 3.1",
     bind<get_openapi>()},
    {http::Method::get, "/llms.txt", "llms", Scope::system, kHidden, Unknown::ignore, "This API as a manual for language models",
     bind<get_llms>()},
};

}  // namespace

Area derived_routes() { return kDerived; }

}  // namespace caisson::routes
