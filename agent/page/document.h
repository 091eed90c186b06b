// A page that is one document: nothing is loaded from elsewhere, and the content security policy names the hashes of its own
// style and script, so nothing else would run. It gets its data from the API like any client, with the key that it was opened
// with.
#pragma once

#include <string>
#include <string_view>

#include "agent/http/response.h"

namespace caisson::routes::page {

class Document {
 public:
  // The texts @STYLE@ and @SCRIPT@ of the HTML are where those go.
  Document(std::string_view html, std::string_view style, std::string_view script);
  [[nodiscard]] http::Response response() const;

 private:
  std::string html_, policy_;
};

}  // namespace caisson::routes::page
