// A page that is one document: nothing is loaded from elsewhere, and the content security policy allows only the hashes of its
// own style and script. Everybody gets it: it holds nothing secret but, for the browser of one who is logged in, the page token
// (auth/logins.h). Its script asks for the key if there is none.
#pragma once

#include <string>
#include <string_view>

#include "agent/routes/route.h"

namespace caisson::routes::page {

// The answer with a page, with the headers that every page of ours has. Must be made for each request: the token is that of its
// own cookie. The HTML must have a line <head>.
[[nodiscard]] http::Response page_response(std::string html, std::string content_security_policy, Call& call);

class Document {
 public:
  // Style and script replace the texts @STYLE@ and @SCRIPT@ of the HTML.
  Document(std::string_view html, std::string_view style, std::string_view script);
  [[nodiscard]] http::Response response(Call& call) const { return page_response(html_, policy_, call); }

 private:
  std::string html_, policy_;
};

}  // namespace caisson::routes::page
