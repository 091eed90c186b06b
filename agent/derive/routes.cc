// GET /v1/openapi.json. The table is constant, so the document is made once.
#include "agent/derive/openapi.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

task<http::Response> get_openapi(Call) {
  static const std::string document = json::dump(derive::openapi(all_routes()));
  co_return http::text_response(200, "application/json", document);
}

constexpr Route kDerived[] = {
    {http::Method::get, "/v1/openapi.json", "openapi", Scope::system, kHidden, Unknown::ignore, "This API as OpenAPI 3.1",
     bind<get_openapi>()},
};

}  // namespace

Area derived_routes() { return kDerived; }

}  // namespace caisson::routes
