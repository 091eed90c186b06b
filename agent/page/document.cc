#include "agent/page/document.h"

#include <openssl/sha.h>

#include <array>
#include <utility>

#include "agent/auth/gate.h"
#include "agent/http/base64.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes::page {
namespace {

// 'sha256-...' of CSP level 3, for an inline element with exactly this text.
std::string hash_source(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return "'sha256-" + http::base64_encode({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

std::string replace_all(std::string text, std::string_view mark, std::string_view with) {
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + with.size()))
    text.replace(at, mark.size(), with);
  return text;
}

// The headers that every page of ours has. Must be made for each request: the token is that of its own cookie. The HTML must have
// a line <head>.
http::Response page_response(std::string html, std::string content_security_policy, bool framed, Call& call) {
  constexpr std::string_view kHead = "<head>\n";
  // No cache has the token (http/response_head.cc): a script of a preview could read it there with its own request.
  const std::string token = call.services.gate->page_token(call.request, auth::Gate::Now::read());
  if (!token.empty()) html.insert(html.find(kHead) + kHead.size(), "<meta name=\"caisson-page\" content=\"" + token + "\">\n");
  http::Response response = http::text_response(200, "text/html; charset=utf-8", std::move(html));
  response.headers = {{"content-security-policy", std::move(content_security_policy)},
                      {"referrer-policy", "no-referrer"},
                      // A page of another origin, or one of ours without this header, that opens this one cannot reach into it.
                      {"cross-origin-opener-policy", "same-origin"},
                      {"vary", "Cookie, Sec-Fetch-Dest, Sec-Fetch-Mode"}};
  if (!framed) response.headers.emplace_back("x-frame-options", "DENY");
  return response;
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

http::Response Document::response(Call& call) const { return page_response(html_, policy_, false, call); }

NonceDocument::NonceDocument(std::string_view html, std::string_view style, std::string_view script)
    : html_(replace_all(replace_all(std::string(html), "@STYLE@", style), "@SCRIPT@", script)) {}

http::Response NonceDocument::response(Call& call, std::string_view ancestors) const {
  const std::string nonce = sys::random_hex(16);
  const std::string source = "'nonce-" + nonce + "'";
  const std::string framing(ancestors.empty() ? "'none'" : ancestors);
  return page_response(replace_all(html_, "@NONCE@", nonce),
                       "default-src 'none'; connect-src 'self'; img-src data:; style-src " + source + "; script-src " + source +
                           "; base-uri 'none'; form-action 'none'; frame-ancestors " + framing +
                           "; require-trusted-types-for 'script'; trusted-types 'none'",
                       !ancestors.empty(), call);
}

}  // namespace caisson::routes::page
