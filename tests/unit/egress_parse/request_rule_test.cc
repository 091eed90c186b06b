// What rules that limit methods and paths say of a request.
#include "launcher/egress/parse/request_rule.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

List list_with(bool read_only, std::vector<std::string> paths) {
  Rule wide{.suffix = "example.org", .read_only = true, .why = "below it"};
  Rule rule{.name = "api.example.org", .read_only = read_only, .inspect = true, .paths = std::move(paths), .why = "a test"};
  return {.rules = {wide, rule}};
}

Refusal judged(const List& list, const std::string& line, const std::string& fields = "", const char* host = "api.example.org") {
  HeadScan scan;
  RequestHead head;
  const std::string text = line + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n";
  EXPECT_TRUE(read_request_head(text, scan, head).done()) << text;
  const Objection out = objection_to(head, list, decide(list, *read_host(host), 443));
  EXPECT_EQ(out.refusal == Refusal::none, out.detail.empty());
  return out.refusal;
}

TEST(RequestRule, WithoutALimitAnythingGoes) {
  const List list = list_with(false, {});
  EXPECT_EQ(judged(list, "DELETE /a/../b", "X-HTTP-Method-Override: PUT\r\n"), Refusal::none);
  EXPECT_FALSE(limits_requests(list, decide(list, *read_host("api.example.org"), 443)));
  EXPECT_FALSE(limits_requests(list, {.kind = Verdict::Kind::allow}));  // by the mode
}

TEST(RequestRule, TheMostExactRuleDecides) {
  const List list = list_with(false, {"/api"});
  EXPECT_EQ(judged(list, "DELETE /api/x"), Refusal::none);
  EXPECT_EQ(judged(list, "DELETE /api/x", "", "other.example.org"), Refusal::method);
  EXPECT_EQ(judged(list, "GET /any//path", "", "other.example.org"), Refusal::none);
}

TEST(RequestRule, PathsArePermittedByWholeSegments) {
  const List list = list_with(false, {"/api", "/repos/acme"});
  for (const char* target : {"/api", "/api/x?q=1", "/repos/acme"})
    EXPECT_EQ(judged(list, std::string("POST ") + target), Refusal::none) << target;
  for (const char* target : {"/", "/apis", "/repos", "/api/../x", "/api/%2e%2e/x", "/api%2f..%2fx", "//api", "/api\\..\\x"})
    EXPECT_EQ(judged(list, std::string("GET ") + target), Refusal::path) << target;
  EXPECT_EQ(judged(list, "OPTIONS *"), Refusal::path);
}

TEST(RequestRule, NothingMakesAnotherRequestOfIt) {
  for (const List& list : {list_with(true, {}), list_with(false, {"/api"})})
    for (const char* name : {"X-HTTP-Method", "x-http-method-override", "X-Method-Override", "X-Original-URL", "X-Rewrite-Url",
                             "X_Original_URL", "X-Original-Uri", "X-Forwarded-Host"})
      EXPECT_EQ(judged(list, "GET /api", std::string(name) + ": /x\r\n"), Refusal::method) << name;
  for (const char* method : {"GET", "HEAD", "OPTIONS"})
    EXPECT_EQ(judged(list_with(true, {}), std::string(method) + " /"), Refusal::none);
  for (const char* method : {"POST", "TRACE", "PROPFIND", "get"})
    EXPECT_EQ(judged(list_with(true, {}), std::string(method) + " /"), Refusal::method) << method;
}

TEST(RequestRule, ABodyIsTheLastOfItsConnectionOrNone) {
  const List limited = list_with(false, {"/api"}), any = list_with(false, {});
  const std::string body = "Content-Length: 4\r\n";
  for (const char* method : {"GET", "HEAD", "OPTIONS", "DELETE"}) {
    EXPECT_EQ(judged(limited, std::string(method) + " /api", body), Refusal::framing) << method;
    EXPECT_EQ(judged(any, std::string(method) + " /api", body), Refusal::none) << method;
  }
  EXPECT_EQ(judged(limited, "POST /api", body), Refusal::none);
  RequestHead head;
  head.method = "POST";
  const Verdict verdict = decide(limited, *read_host("api.example.org"), 443);
  EXPECT_FALSE(is_last(head, limited, verdict));
  head.body.kind = BodyKind::chunked;
  EXPECT_TRUE(is_last(head, limited, verdict));
  EXPECT_FALSE(is_last(head, any, decide(any, *read_host("api.example.org"), 443)));
}

}  // namespace
}  // namespace caisson::egress
