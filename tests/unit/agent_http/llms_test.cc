#include "agent/derive/llms.h"

#include <gtest/gtest.h>

#include "agent/routes/table.h"

namespace caisson {
namespace {

const std::string& manual() {
  static const std::string text = derive::llms_text(routes::all_routes());
  return text;
}

// The part about one operation.
std::string section(std::string_view heading) {
  const std::size_t from = manual().find("### " + std::string(heading) + "\n");
  if (from == std::string::npos) return "";
  return manual().substr(from, manual().find("\n#", from + 1) - from);
}

TEST(Llms, EveryDescribedOperationIsInItAndNoOther) {
  std::size_t headings = 0, described = 0;
  for (std::size_t at = manual().find("\n### "); at != std::string::npos; at = manual().find("\n### ", at + 1)) ++headings;
  for (const routes::Route* route : routes::all_routes()) {
    if ((route->flags & routes::kHidden) != 0) continue;
    ++described;
    const std::string text = section(std::string(http::method_name(route->method)) + " " + std::string(route->path));
    EXPECT_TRUE(text.contains(route->summary)) << route->path;
    EXPECT_TRUE(route->endpoint.websocket != nullptr || text.contains("    curl -sS")) << route->path;
  }
  EXPECT_EQ(headings, described);
}

TEST(Llms, FieldsOfABodyAreListedWithTheirTypes) {
  const std::string text = section("POST /v1/bash/exec");
  EXPECT_TRUE(text.contains("- `command` (string, required")) << text;
  EXPECT_TRUE(text.contains(R"(-d '{"command":"ls -l"}' "$URL/v1/bash/exec")")) << text;
}

TEST(Llms, OnlyKeyedOperationsSendTheKey) {
  EXPECT_FALSE(section("GET /v1/ping").contains("$KEY"));
  EXPECT_TRUE(section("GET /v1/sandbox").contains("-H \"X-AIO-API-Key: $KEY\""));
}

// A model reads it whole: some 25,000 tokens.
TEST(Llms, ItIsBounded) { EXPECT_LT(manual().size(), 100'000u); }

}  // namespace
}  // namespace caisson
