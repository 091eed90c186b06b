// GET /caisson/: what runs here and what confines it, for people. One document, put together once: nothing is loaded from
// elsewhere, and the content security policy names the hashes of its own style and script, so nothing else would run. It gets its
// data from the API like any client, with the key that it was opened with.
#include <openssl/sha.h>

#include <page_files.h>  // generated: kHtml, kStyle, kScript
#include <array>

#include "agent/http/base64.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

// 'sha256-...' of CSP level 3, for an inline element with exactly this text.
std::string hash_source(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return "'sha256-" + http::base64_encode({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

std::string document() {
  std::string out(page::kHtml);
  for (const auto& [mark, text] : {std::pair("@STYLE@", page::kStyle), std::pair("@SCRIPT@", page::kScript)})
    out.replace(out.find(mark), std::string_view(mark).size(), text);
  return out;
}

task<http::Response> get_page(Call) {
  static const std::string html = document();
  static const std::string policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src " +
                                    hash_source(page::kStyle) + "; script-src " + hash_source(page::kScript) +
                                    "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                                    "require-trusted-types-for 'script'; trusted-types 'none'";
  http::Response response = http::text_response(200, "text/html; charset=utf-8", html);
  response.headers = {{"content-security-policy", policy},
                      {"referrer-policy", "no-referrer"},  // the key may be in the URL
                      {"cross-origin-opener-policy", "same-origin"}};
  co_return response;
}

constexpr Route kPage[] = {
    {http::Method::get, "/caisson/", "page", Scope::system, kHidden, Unknown::ignore, "Sessions, walls and denials, as a page",
     bind<get_page>()},
    {http::Method::get, "/caisson", "page_without_slash", Scope::system, kHidden, Unknown::ignore, "The same", bind<get_page>()},
};

}  // namespace

Area page_routes() { return kPage; }

}  // namespace caisson::routes
