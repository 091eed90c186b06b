#include "agent/page/document.h"

#include <openssl/sha.h>

#include <array>
#include <utility>

#include "agent/http/base64.h"

namespace caisson::routes::page {
namespace {

// 'sha256-...' of CSP level 3, for an inline element with exactly this text.
std::string hash_source(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return "'sha256-" + http::base64_encode({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

}  // namespace

Document::Document(std::string_view html, std::string_view style, std::string_view script)
    : html_(html),
      policy_("default-src 'none'; connect-src 'self'; img-src data:; style-src " + hash_source(style) + "; script-src " +
              hash_source(script) +
              "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
              "require-trusted-types-for 'script'; trusted-types 'none'") {
  for (const auto& [mark, text] : {std::pair("@STYLE@", style), std::pair("@SCRIPT@", script)})
    html_.replace(html_.find(mark), std::string_view(mark).size(), text);
}

http::Response Document::response() const {
  http::Response response = http::text_response(200, "text/html; charset=utf-8", html_);
  response.headers = {{"content-security-policy", policy_},
                      {"referrer-policy", "no-referrer"},  // the key may be in the URL
                      {"cross-origin-opener-policy", "same-origin"}};
  return response;
}

}  // namespace caisson::routes::page
