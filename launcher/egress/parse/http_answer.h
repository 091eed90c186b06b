// Heads of answers, for connections to servers that carry more than one request: where each answer's body ends, and whether the
// connection may carry a next one. A server is as hostile as a session.
#pragma once

#include <string_view>

#include "launcher/egress/parse/http_fields.h"

namespace caisson::egress {

struct AnswerHead {
  int status = 0;
  int minor = 1;            // HTTP/1.x
  std::string_view reason;  // a view into the bytes, as are the fields
  Framing body;
  bool interim = false;     // 1xx but 101: another head follows
  bool switches = false;    // 101: what follows is no HTTP
  bool keep_alive = false;  // the connection may carry another request once the body has ended, if nothing follows it unasked
  Fields fields;
};

// `bytes`: all that has come of the answer so far. to_head: the request was HEAD.
Outcome read_answer_head(std::string_view bytes, bool to_head, HeadScan& scan, AnswerHead& head);

}  // namespace caisson::egress
