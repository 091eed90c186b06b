#include "agent/page/document.h"

#include <openssl/sha.h>

#include <array>
#include <utility>

#include "agent/auth/gate.h"
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
      policy_("default-src 'none'; connect-src 'self'; img-src data: blob:; style-src " + hash_source(style) + "; script-src " +
              hash_source(script) +
              "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
              "require-trusted-types-for 'script'; trusted-types 'none'") {
  for (const auto& [mark, text] : {std::pair("@STYLE@", style), std::pair("@SCRIPT@", script)})
    html_.replace(html_.find(mark), std::string_view(mark).size(), text);
}

http::Response page_response(std::string html, std::string content_security_policy, Call& call) {
  constexpr std::string_view kHead = "<head>\n";
  // No cache has the token (http/response_head.cc): a script of a preview could read it there with its own request.
  const std::string token = call.services.gate->page_token(call.request, auth::Gate::Now::read());
  if (!token.empty()) html.insert(html.find(kHead) + kHead.size(), "<meta name=\"caisson-page\" content=\"" + token + "\">\n");
  http::Response response = http::text_response(200, "text/html; charset=utf-8", std::move(html));
  response.headers = {{"content-security-policy", std::move(content_security_policy)},
                      {"referrer-policy", "no-referrer"},
                      {"x-frame-options", "DENY"},
                      // A page of another origin, or one of ours without this header, that opens this one cannot reach into it.
                      {"cross-origin-opener-policy", "same-origin"},
                      {"vary", "Cookie, Sec-Fetch-Dest, Sec-Fetch-Mode"}};
  return response;
}

}  // namespace caisson::routes::page
