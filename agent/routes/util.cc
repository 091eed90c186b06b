// /v1/util. Decisions where the contract is silent: `data` is the Markdown, a text; what cannot be fetched, read or converted is
// success:false with the reason.
#include "agent/routes/table.h"
#include "agent/routes/util_types.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

task<http::Response> convert_to_markdown(Call call, UtilConvertToMarkdownRequest body) {
  CO_TRY_ASSIGN(std::string text, co_await call.services.workspace->documents.to_markdown(std::move(body.uri)));
  CO_TRY_ASSIGN(const http::Lane::Turn turn, co_await call.work(text.size()));
  co_return http::ok(std::move(text));
}

constexpr Route kUtil[] = {
    {http::Method::post, "/v1/util/convert_to_markdown", "convert_to_markdown_v1_util_convert_to_markdown_post", Scope::util,
     kNone, Unknown::ignore, "A document as Markdown", bind<convert_to_markdown>()},
};

}  // namespace

Area util_routes() { return kUtil; }

}  // namespace caisson::routes
