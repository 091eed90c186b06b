// A page that is one document: nothing is loaded from elsewhere, and the content security policy allows only the hashes of its
// own style and script. Everybody gets it: it holds nothing secret but, for the browser of one who is logged in, the page token
// (auth/logins.h). Its script asks for the key if there is none.
#pragma once

#include <string>
#include <string_view>

#include "agent/routes/route.h"

namespace caisson::routes::page {

class Document {
 public:
  // Style and script replace the texts @STYLE@ and @SCRIPT@ of the HTML.
  Document(std::string_view html, std::string_view style, std::string_view script);
  [[nodiscard]] http::Response response(Call& call) const;

 private:
  std::string html_, policy_;
};

// A page with third parties' scripts. They make style elements whose text is known only in the browser, so a nonce permits what
// the page has, not hashes; the texts @NONCE@ of the HTML become it. Not 'self' either, because /proxy/ and downloads answer with
// what sessions wrote, from the same origin.
class NonceDocument {
 public:
  NonceDocument(std::string_view html, std::string_view style, std::string_view script);
  // `ancestors`: origins of pages that may frame it, separated by spaces; "": none may.
  [[nodiscard]] http::Response response(Call& call, std::string_view ancestors = "") const;

 private:
  std::string html_;
};

}  // namespace caisson::routes::page
